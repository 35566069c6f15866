// Streamed bodies: the server pulls pieces only as fast as the client reads, and drops the source
// when the client disconnects.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "http/answer_writer.h"
#include "http/client.h"
#include "http/test_byte_stream.h"
#include "http/test_raw_server.h"
#include "http/test_server.h"

namespace muster::http {
namespace {

using base::ErrorCode;

/// The state of a stream as a test observes it.
class Observed {
 public:
  std::atomic<size_t> pulled{0};

  void drop() {
    if (!dropped_.exchange(true)) drop_.set_value();
  }
  /// Waits for the first stream to be dropped.
  bool is_dropped() { return drop_.get_future().wait_for(kPatience) == std::future_status::ready; }

 private:
  std::atomic<bool> dropped_{false};
  std::promise<void> drop_;
};

/// `count` pieces of `size` bytes; then the end, or nothing further.
class Pieces : public BodyStream {
 public:
  enum class Then { kEnd, kSilence, kThrow };

  Pieces(Observed& observed, size_t count, size_t size, Then then)
      : observed_(observed), left_(count), size_(size), then_(then) {}
  ~Pieces() override { observed_.drop(); }

  void pull(Deliver deliver) override {
    if (left_ > 0) {
      --left_;
      observed_.pulled += size_;
      return deliver(std::string(size_, 'x'));
    }
    if (then_ == Then::kThrow) throw std::runtime_error("the source broke");
    if (then_ == Then::kEnd) deliver(std::nullopt);
    open_ = std::move(deliver);
  }

 private:
  Observed& observed_;
  size_t left_;
  size_t size_;
  Then then_;
  Deliver open_;
};

/// A handler that answers everything with such a stream.
Handler streaming(Observed& observed, size_t count, size_t size, Pieces::Then then) {
  return [=, &observed](const Request&, const Respond& respond) {
    respond({.content_type = "text/plain",
             .stream = std::make_shared<Pieces>(observed, count, size, then)});
  };
}

/// A handler that answers everything with such a stream and with its length.
Handler streaming_of_length(Observed& observed, size_t count, size_t size, size_t length) {
  return [=, &observed](const Request&, const Respond& respond) {
    respond({.content_type = "text/plain",
             .headers = {{"content-length", std::to_string(length)}},
             .stream = std::make_shared<Pieces>(observed, count, size, Pieces::Then::kEnd)});
  };
}

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nhost: h\r\n\r\n";

TEST(Stream, ArrivesWholeAndLeavesTheConnectionUsable) {
  Observed observed;
  TestServer server(streaming(observed, 1000, 1234, Pieces::Then::kEnd));
  BlockingClient client(server.socket());
  size_t received = 0;

  const auto response = client.stream({}, [&](std::string_view piece) {
    received += piece.size();
    return true;
  });

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(received, 1'234'000U);
  EXPECT_TRUE(observed.is_dropped());
  EXPECT_EQ(client.send({.method = "HEAD"})->status, 200);
  EXPECT_EQ(server.connections(), 1U);
}

TEST(Stream, IsPulledOnlyAsFastAsTheClientReads) {
  constexpr size_t kPiece = 64 << 10;
  constexpr size_t kWhole = 200 << 20;
  constexpr size_t kInFlight = 4 << 20;  // more than the kernel's buffers hold
  Observed observed;
  TestServer server(streaming(observed, kWhole / kPiece, kPiece, Pieces::Then::kEnd));
  BlockingClient client(server.socket());
  size_t received = 0;
  size_t most_ahead = 0;

  const auto response = client.stream({}, [&](std::string_view piece) {
    if (received == 0) {
      // The server could run ahead here, because the client does not read.
      for (int i = 0; i < 1000; ++i) server.on_loop([] {});
    }
    most_ahead = std::max(most_ahead, observed.pulled - received);
    received += piece.size();
    return true;
  });

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(received, kWhole);
  EXPECT_LT(most_ahead, kInFlight);
}

TEST(Stream, ShowsItsHeadBeforeItsFirstPiece) {
  Observed observed;
  TestServer server(streaming(observed, 0, 0, Pieces::Then::kSilence));
  RawClient client(server.socket());

  client.send(kGet);

  EXPECT_EQ(client.read_to("\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n");
}

TEST(Stream, IsNotEndedByAnEmptyPiece) {
  Observed observed;
  TestServer server(streaming(observed, 3, 0, Pieces::Then::kEnd));
  RawClient client(server.socket());

  client.send(kGet);

  EXPECT_TRUE(client.read_to("0\r\n\r\n").ends_with("chunked\r\n\r\n0\r\n\r\n"));
}

TEST(Stream, OfAnOldClientEndsWithTheConnection) {
  Observed observed;
  TestServer server(streaming(observed, 2, 3, Pieces::Then::kEnd));
  RawClient client(server.socket());

  client.send("GET / HTTP/1.0\r\n\r\n");

  EXPECT_EQ(client.read_to_the_end(),
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nxxxxxx");
}

TEST(Stream, IsDroppedWhenTheClientLeavesWhileItIsSilent) {
  Observed observed;
  TestServer server(streaming(observed, 1, 10, Pieces::Then::kSilence));
  RawClient client(server.socket());
  client.send(kGet);
  client.read_to("xxxxxxxxxx");

  client.leave();

  EXPECT_TRUE(observed.is_dropped());
  EXPECT_EQ(server.connections(), 0U);
}

TEST(Stream, IsDroppedWhenTheClientLeavesWithoutHavingRead) {
  Observed observed;
  TestServer server(streaming(observed, 1 << 20, 1 << 20, Pieces::Then::kEnd));
  RawClient client(server.socket());
  client.send(kGet);
  client.read_to("\r\n\r\n");

  client.leave();

  EXPECT_TRUE(observed.is_dropped());
}

TEST(Stream, OfAGivenLengthIsSentAsItIsAndLeavesTheConnectionUsable) {
  Observed observed;
  TestServer server(streaming_of_length(observed, 3, 10, 30));
  BlockingClient client(server.socket());

  const auto first = client.send({});
  const auto second = client.send({});

  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->body, std::string(30, 'x'));
  EXPECT_EQ(first->headers.at("content-length"), "30");
  EXPECT_EQ(first->headers.count("transfer-encoding"), 0U);
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(second->body, first->body);
}

TEST(Stream, ThatHoldsLessOrMoreThanAnnouncedBreaksTheConnection) {
  for (const size_t announced : {29, 31}) {
    Observed observed;
    TestServer server(streaming_of_length(observed, 3, 10, announced));

    const auto response = BlockingClient(server.socket()).send({});

    EXPECT_FALSE(response) << announced;
  }
}

TEST(Stream, OfNoLengthEndsAtOnce) {
  Observed observed;
  TestServer server(streaming_of_length(observed, 0, 0, 0));

  const auto response = BlockingClient(server.socket()).send({});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->body, "");
}

/// Sends the same bytes for ever. Other streams may share these bytes.
class SharedPieces : public BodyStream {
 public:
  SharedPieces(Observed& observed, SharedBytes piece)
      : observed_(observed), piece_(std::move(piece)) {}
  ~SharedPieces() override { observed_.drop(); }
  void pull(Deliver deliver) override {
    observed_.pulled += piece_->size();
    deliver(piece_);
  }

 private:
  Observed& observed_;
  SharedBytes piece_;
};

TEST(Stream, MayDeliverBytesThatItSharesWithoutACopy) {
  Observed observed;
  const auto piece = std::make_shared<const std::string>(10'000, 'x');
  TestServer server([&](const Request&, const Respond& respond) {
    respond({.stream = std::make_shared<SharedPieces>(observed, piece)});
  });
  BlockingClient client(server.socket());
  size_t received = 0;

  const auto response = client.stream({}, [&](std::string_view bytes) {
    EXPECT_EQ(bytes.find_first_not_of('x'), std::string_view::npos);
    received += bytes.size();
    return received < 1'000'000;
  });

  EXPECT_TRUE(response) << response.error().to_string();
  EXPECT_TRUE(observed.is_dropped());
}

TEST(Stream, IsDroppedWhenTheClientStopsReading) {
  Observed observed;
  TestServer server(streaming(observed, 1 << 20, 1 << 20, Pieces::Then::kEnd),
                    {.write_timeout = std::chrono::seconds(1)});
  RawClient client(server.socket());
  client.send(kGet);
  client.read_to("\r\n\r\n");

  EXPECT_TRUE(observed.is_dropped());
  EXPECT_EQ(server.connections(), 0U);
  EXPECT_LE(observed.pulled, size_t{4} << 20);  // unread bytes have not piled up
}

TEST(AnswerWriter, LimitsTheTimeOfAnAnswerThatWaitsBehind100Continue) {
  base::EventLoop loop;
  SeenStream seen{.accepts = false};
  StuckStream stream(loop, seen);
  const auto writer = std::make_shared<AnswerWriter>();
  int limits = 0;
  writer->start(
      writer, stream,
      {.on_write = [&] { ++limits; }, .on_pull = [] {}, .on_done = [] {}, .on_failure = [] {}});
  writer->write_continue();

  writer->write({.body = "done"}, Framing::kLength, {});

  EXPECT_EQ(seen.written.size(), 1U) << "the answer waits";
  EXPECT_EQ(limits, 1);
  writer->drop();
  stream.close();
  loop.post([&] { loop.stop(); });
  loop.run();
}

TEST(Stream, ContinuesForASlowClient) {
  constexpr size_t kPiece = 16 << 20;  // many times the size of the kernel's buffers
  Observed observed;
  TestServer server(streaming(observed, 1, kPiece, Pieces::Then::kEnd),
                    {.write_timeout = std::chrono::seconds(1)});
  RawClient client(server.socket());
  client.send("GET / HTTP/1.0\r\n\r\n");
  client.read_to("\r\n\r\n");
  size_t received = 0;

  // The whole answer takes longer than the server's time limit; no single part does.
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500)) {
    received += client.read_some(64 << 10).size();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  received += client.read_to_the_end().size();

  EXPECT_EQ(received, kPiece);
}

TEST(Stream, IsDroppedWhenTheServerCloses) {
  Observed observed;
  TestServer server(streaming(observed, 0, 0, Pieces::Then::kSilence));
  RawClient client(server.socket());
  client.send(kGet);
  client.read_to("\r\n\r\n");

  server.on_loop([&] { server.server().close(); });

  EXPECT_TRUE(observed.is_dropped());
}

TEST(Stream, ThatBreaksIsAnIncompleteAnswer) {
  Observed observed;
  TestServer server(streaming(observed, 3, 10, Pieces::Then::kThrow));

  const auto response = BlockingClient(server.socket()).stream({}, [](auto) { return true; });

  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
}

TEST(Stream, EndsWhereTheReceiverHasEnough) {
  Observed observed;
  TestServer server(streaming(observed, 1 << 20, 1 << 20, Pieces::Then::kEnd));
  BlockingClient client(server.socket());

  const auto response = client.stream({}, [](auto) { return false; });

  EXPECT_TRUE(response) << response.error().to_string();
  EXPECT_TRUE(observed.is_dropped());
}

TEST(Stream, OfARefusalIsNotHandedOver) {
  TestServer server([](const Request&, const Respond& respond) {
    respond({.status = 404, .body = "no such job"});
  });

  const auto response = BlockingClient(server.socket()).stream({}, [](auto) {
    ADD_FAILURE() << "handed over";
    return true;
  });

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->body, "no such job");
}

TEST(Wake, IsServedWhileTheStreamIsSilentAndMayEndIt) {
  Observed observed;
  TestServer server(streaming(observed, 1, 10, Pieces::Then::kSilence));
  BlockingClient client(server.socket());
  const base::UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  const auto ring = [&] { ASSERT_EQ(::eventfd_write(event.get(), 1), 0); };
  int wakes = 0;

  const auto response = client.stream({},
                                      [&](auto) {
                                        ring();
                                        return true;
                                      },
                                      {.fd = event.get(), .on_wake = [&] {
                                         eventfd_t count = 0;
                                         EXPECT_EQ(::eventfd_read(event.get(), &count), 0);
                                         if (++wakes == 2) return false;
                                         ring();
                                         return true;
                                       }});

  EXPECT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(wakes, 2);
  EXPECT_TRUE(observed.is_dropped());
}

TEST(Wake, EndsARequestThatTheServerDoesNotRead) {
  std::promise<void> left;
  const RawServer server([&](RawConnection&) { left.get_future().wait(); });
  const base::UniqueFd event(::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
  BlockingClient client(server.path());
  client.set_wake({.fd = event.get(), .on_wake = [] { return false; }});

  // More than the kernel's buffers hold.
  const auto answer = client.send({.method = "POST", .body = std::string(16 << 20, 'x')});
  left.set_value();

  ASSERT_FALSE(answer);
  EXPECT_NE(base::detail_of<RequestLeft>(answer.error()), nullptr);
}

TEST(Wake, IsServedAmidAStreamThatNeverPauses) {
  constexpr size_t kSize = 16 << 10;
  constexpr size_t kCount = 1'000;
  Observed observed;
  const TestServer server(streaming(observed, kCount, kSize, Pieces::Then::kEnd));
  const base::UniqueFd event(::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC));
  size_t received = 0;

  const auto answer = BlockingClient(server.socket())
                          .stream({},
                                  [&](std::string_view piece) {
                                    received += piece.size();
                                    // More bytes have arrived before the client looks for them.
                                    const size_t ahead =
                                        std::min(kCount * kSize, received + 3 * kSize);
                                    while (observed.pulled < ahead) std::this_thread::yield();
                                    return true;
                                  },
                                  {.fd = event.get(), .on_wake = [&] { return received == 0; }});

  EXPECT_TRUE(answer);
  EXPECT_LT(received, size_t{256} << 10);
}

}  // namespace
}  // namespace muster::http
