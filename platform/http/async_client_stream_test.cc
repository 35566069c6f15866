// Connections of the client that become streams.
#include <future>
#include <optional>

#include "http/async_client.h"
#include "http/test_async_client.h"
#include "http/test_raw_server.h"

namespace muster::http {
namespace {

using base::Result;

class AsyncClientStream : public AsyncClientTest {
 protected:
  /// The bytes and events that a stream has reported.
  struct StreamOutput {
    std::string bytes;
    bool ended = false;
    std::unique_ptr<RawStream> stream;
    std::optional<Result<Upgraded>> upgraded;
  };

  AsyncCall upgrade(AsyncClient& client, StreamOutput& output) {
    const auto on_bytes = [&](std::string_view bytes) {
      output.bytes += bytes;
      look();
    };
    const auto on_end = [&] {
      EXPECT_FALSE(output.ended) << "it has ended twice";
      output.ended = true;
      look();
    };
    return client.upgrade({.method = "POST",
                           .target = "/attach",
                           .headers = {{"connection", "Upgrade"}, {"upgrade", "tcp"}}},
                          {}, {.on_bytes = on_bytes, .on_end = on_end, .on_drain = [&] { look(); }},
                          [&](Result<Upgraded> upgraded) {
                            if (upgraded) output.stream = std::move(upgraded->stream);
                            output.upgraded.emplace(std::move(upgraded));
                            look();
                          });
  }
};

TEST_F(AsyncClientStream, AConnectionBecomesAStreamBothWaysByEitherOfTwoAnswers) {
  for (const std::string head : {"101 UPGRADED\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n",
                                 "200 OK\r\ncontent-type: application/x-raw\r\n\r\n"}) {
    RawServer server([&](RawConnection& connection) {
      connection.read_head();
      connection.send("HTTP/1.1 " + head + "early ");
      const std::string input = connection.read_to_the_end();
      connection.send("got " + std::to_string(input.size()));
    });
    AsyncClient client(loop(), server.path(), "the server");
    StreamOutput output;
    const AsyncCall call = upgrade(client, output);
    ASSERT_TRUE(run_until([&] { return output.upgraded.has_value(); }));
    ASSERT_TRUE(*output.upgraded) << output.upgraded->error().to_string();
    ASSERT_NE(output.stream, nullptr) << head;

    output.stream->write(std::string(5 << 20, 'i'));
    output.stream->write("!");
    output.stream->close_output();

    ASSERT_TRUE(run_until([&] { return output.ended; }));
    EXPECT_EQ(output.bytes, "early got 5242881") << head;
    EXPECT_EQ(output.stream->waiting(), 0U);
  }
}

TEST_F(AsyncClientStream, ARefusedUpgradeIsReportedWithTheAnswer) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 409 Conflict\r\ncontent-length: 7\r\n\r\nstopped");
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), server.path(), "the server");
  StreamOutput output;

  const AsyncCall call = upgrade(client, output);

  ASSERT_TRUE(run_until([&] { return output.upgraded.has_value(); }));
  ASSERT_TRUE(*output.upgraded);
  EXPECT_EQ(output.stream, nullptr);
  EXPECT_EQ((*output.upgraded)->answer.status, 409);
  EXPECT_EQ((*output.upgraded)->answer.body, "stopped");
}

TEST_F(AsyncClientStream, WrittenBytesWaitForASlowServerAndTheirEndIsReported) {
  std::promise<void> go;
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 101 UPGRADED\r\n\r\n");
    go.get_future().wait();
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), server.path(), "the server");
  StreamOutput output;
  const AsyncCall call = upgrade(client, output);
  ASSERT_TRUE(run_until([&] { return output.stream != nullptr; }));

  output.stream->write(std::string(8 << 20, 'x'));
  EXPECT_GT(output.stream->waiting(), 0U);
  go.set_value();

  EXPECT_TRUE(run_until([&] { return output.stream->waiting() == 0; }));
  output.stream.reset();
}

TEST_F(AsyncClientStream, AStreamLivesOnWithoutItsCallAndEndsWhenItIsDropped) {
  std::promise<std::string> left;
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 101 UPGRADED\r\n\r\n");
    left.set_value(connection.read_to_the_end());
  });
  AsyncClient client(loop(), server.path(), "the server");
  StreamOutput output;
  {
    const AsyncCall call = upgrade(client, output);
    ASSERT_TRUE(run_until([&] { return output.stream != nullptr; }));
  }
  output.stream->write("still here");
  ASSERT_TRUE(run_until([&] { return output.stream->waiting() == 0; }));

  output.stream.reset();

  EXPECT_EQ(left.get_future().get(), "still here");
  EXPECT_FALSE(output.ended);
}

}  // namespace
}  // namespace muster::http
