// The requests that the client sends, and the parts of an answer that it hands on.
#include "http/async_client.h"

#include <future>
#include <optional>
#include <thread>

#include "http/test_async_client.h"
#include "http/test_raw_server.h"
#include "http/test_server.h"

namespace muster::http {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// --- answers ---

TEST_F(AsyncClientTest, SendsARequestAndGetsItsAnswer) {
  const TestServer server(
      [](const Request& request, const Respond& respond) { respond(echo(request)); });

  const auto answer = ask(
      server.socket(),
      {.method = "PUT", .target = "/a%20b?x=1", .headers = {{"x-mine", "yes"}}, .body = "body"});

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "PUT /a b body");
  EXPECT_EQ(answer->headers.at("x-seen"), "yes");
}

TEST_F(AsyncClientTest, ManyRequestsAtOnceEachGetTheirOwnAnswer) {
  const TestServer server(
      [](const Request& request, const Respond& respond) { respond(echo(request)); });
  AsyncClient client(loop(), server.socket(), "the server");
  std::vector<std::optional<Result<Response>>> answers(100);
  std::vector<AsyncCall> calls;
  size_t count = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    calls.push_back(
        client.send({.target = "/" + std::to_string(i)}, {}, [&, i](Result<Response> answer) {
          answers[i].emplace(std::move(answer));
          ++count;
          look();
        }));
  }

  ASSERT_TRUE(run_until([&] { return count == answers.size(); }));

  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(*answers[i]) << answers[i]->error().to_string();
    EXPECT_EQ((*answers[i])->body, "GET /" + std::to_string(i) + " ");
  }
}

TEST_F(AsyncClientTest, ARefusalIsAnAnswerWithItsBody) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone");
    connection.read_to_the_end();  // the connection stays open: the length ends the answer
  });

  const auto answer = ask(server.path());

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, "none");
}

TEST_F(AsyncClientTest, OfAHeadRequestTheHeadersAreTheAnswer) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nx-fact: yes\r\n\r\n");
    connection.read_to_the_end();
  });

  const auto answer = ask(server.path(), {.method = "HEAD"});

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->headers.at("x-fact"), "yes");
}

TEST_F(AsyncClientTest, ABodyIsSentInChunksAsItIsProduced) {
  std::string seen;
  RawServer server([&](RawConnection& connection) {
    seen = connection.read_to("0\r\n\r\n");
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  });
  std::vector<std::string> pieces{"", "last piece", "first"};

  const auto answer =
      ask(server.path(), {.method = "PUT", .next_piece = [&]() -> Result<std::string> {
                            std::string piece = pieces.back();
                            pieces.pop_back();
                            return piece;
                          }});

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_NE(seen.find("transfer-encoding: chunked\r\n"), std::string::npos) << seen;
  EXPECT_TRUE(seen.ends_with("\r\n\r\n5\r\nfirst\r\na\r\nlast piece\r\n0\r\n\r\n")) << seen;
  EXPECT_TRUE(pieces.empty());
}

TEST_F(AsyncClientTest, ASourceThatFailsEndsItsRequestWithItsReason) {
  RawServer server([](RawConnection& connection) { connection.read_to_the_end(); });

  const auto answer = ask(
      server.path(), {.method = "PUT", .next_piece = []() -> Result<std::string> {
                        return Error{.code = ErrorCode::kExhausted, .what = "the source is broken"};
                      }});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "the source is broken");
}

TEST_F(AsyncClientTest, AnAnswerThatArrivesBeforeTheRequestIsCompleteIsRead) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 403 Forbidden\r\ncontent-length: 9\r\n\r\nread-only");
    // Closes the connection with most of the body unread.
  });

  const auto answer =
      ask(server.path(), {.method = "PUT", .next_piece = []() -> Result<std::string> {
                            return std::string(1 << 20, 'x');
                          }});

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(answer->body, "read-only");
}

// --- bodies in pieces ---

TEST_F(AsyncClientTest, ABodyIsHandedOnAsItComesAndItsHeadBefore) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    connection.send("3\r\nend\r\n0\r\n\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), server.path(), "the server");
  std::string calls;
  std::optional<Result<Response>> answer;

  const AsyncCall call = client.stream(
      {}, {},
      [&](std::string_view piece) {
        calls += piece;
        return true;
      },
      into(answer), [&] { calls += "head:"; });

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  ASSERT_TRUE(*answer) << answer->error().to_string();
  EXPECT_EQ(calls, "head:firstend");
  EXPECT_EQ((*answer)->body, "");
}

TEST_F(AsyncClientTest, TheBodyOfARefusalIsKeptAlsoWhereBodiesAreHandedOn) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 500 Oh\r\ncontent-length: 3\r\n\r\nwhy");
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), server.path(), "the server");
  std::optional<Result<Response>> answer;

  const AsyncCall call = client.stream(
      {}, {},
      [](std::string_view) {
        ADD_FAILURE();
        return true;
      },
      into(answer), [] { ADD_FAILURE(); });

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->body, "why");
}

TEST_F(AsyncClientTest, WhileABodyIsPausedTheServerWaits) {
  constexpr size_t kWhole = 32 << 20;
  std::promise<void> sent;
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(kWhole) + "\r\n\r\n");
    connection.send(std::string(kWhole, 'x'));
    sent.set_value();
  });
  AsyncClient client(loop(), server.path(), "the server");
  size_t got = 0;
  std::optional<Result<Response>> answer;
  AsyncCall call;
  call = client.stream(
      {}, {},
      [&](std::string_view piece) {
        if (got == 0) call.pause(true);
        got += piece.size();
        look();
        return true;
      },
      into(answer));
  ASSERT_TRUE(run_until([&] { return got > 0; }));
  const size_t before = got;
  wait_longer_than_soon();

  EXPECT_EQ(got, before);
  auto all_sent = sent.get_future();
  EXPECT_EQ(all_sent.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  call.pause(false);
  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  EXPECT_TRUE(*answer) << answer->error().to_string();
  EXPECT_EQ(got, kWhole);
}

TEST_F(AsyncClientTest, APauseByTheCallerDoesNotCountAsSilence) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), server.path(), "the server");
  std::string got;
  std::optional<Result<Response>> answer;
  AsyncCall call;
  call = client.stream(
      {}, {.silence = kSoon},
      [&](std::string_view piece) {
        got += piece;
        call.pause(true);
        look();
        return true;
      },
      into(answer));
  ASSERT_TRUE(run_until([&] { return !got.empty(); }));
  wait_longer_than_soon();
  EXPECT_FALSE(answer);

  call.pause(false);

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  EXPECT_FALSE(*answer);
}

TEST_F(AsyncClientTest, ACallThatStopsReadingTheBodyStillGetsItsAnswer) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\n\r\nmuch more");
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), server.path(), "the server");
  std::optional<Result<Response>> answer;

  const AsyncCall call =
      client.stream({}, {}, [](std::string_view) { return false; }, into(answer));

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  EXPECT_TRUE(*answer);
}

// --- dropping ---

TEST_F(AsyncClientTest, ADroppedCallReportsNothingMoreAndCloses) {
  std::promise<void> asked;
  std::promise<void> left;
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    asked.set_value();
    connection.read_to_the_end();
    left.set_value();
  });
  AsyncClient client(loop(), server.path(), "the server");
  AsyncCall call = client.send({}, {}, [](const Result<Response>&) { ADD_FAILURE(); });
  bool is_asked = false;
  std::thread waits([&] {
    asked.get_future().wait();
    loop().post([&] {
      is_asked = true;
      look();
    });
  });
  ASSERT_TRUE(run_until([&] { return is_asked; }));
  waits.join();

  call = AsyncCall();

  EXPECT_EQ(left.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(AsyncClientTest, ACallbackMayDropItsOwnCall) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n1\r\ny\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), server.path(), "the server");
  auto call = std::make_unique<AsyncCall>();
  std::string got;
  *call = client.stream(
      {}, {},
      [&](std::string_view piece) {
        got += piece;
        call.reset();
        look();
        return true;
      },
      [](const Result<Response>&) { ADD_FAILURE(); });

  ASSERT_TRUE(run_until([&] { return call == nullptr; }));

  EXPECT_EQ(got, "x");
}

}  // namespace
}  // namespace muster::http
