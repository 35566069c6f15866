// The client against servers that have ended, are silent, never end their answer, or do not speak
// HTTP.
#include <sys/un.h>

#include <optional>

#include "base/test_folder.h"
#include "http/async_client.h"
#include "http/test_async_client.h"
#include "http/test_raw_server.h"

namespace muster::http {
namespace {

using base::ErrorCode;
using base::Result;

TEST_F(AsyncClientTest, TheErrorNamesAnAddressWithoutAListener) {
  const base::TestFolder folder;
  const auto missing = ask(folder / "none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(missing.error().what, "the server cannot be reached: socket '" +
                                      (folder / "none").string() + "' does not exist");

  const auto dead = folder / "dead";
  {
    const base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    dead.string().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  const auto refused = ask(dead);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST_F(AsyncClientTest, AServerThatNeverAnswersIsGivenUp) {
  RawServer server([](RawConnection& connection) { connection.read_to_the_end(); });

  const auto answer = ask(server.path(), {}, {.answer = kSoon});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(answer.error().what, "the server does not answer within 50 ms");
}

TEST_F(AsyncClientTest, AServerThatDribblesIsGivenUpAllTheSame) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
    while (connection.send("x")) {
    }
  });

  const auto answer = ask(server.path(), {}, {.answer = kSoon});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
}

TEST_F(AsyncClientTest, AServerWhoseQueueIsFullIsTriedAgainUntilTheTimeLimit) {
  const base::TestFolder folder;
  const auto path = (folder / "full").string();
  const base::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<base::UniqueFd> waiting;
  for (auto fd = try_to_connect_to(path); fd; fd = try_to_connect_to(path)) {
    waiting.push_back(*std::move(fd));
  }

  const auto answer = ask(std::filesystem::path(path), {}, {.connect = kSoon});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "the server does not accept a connection within 50 ms");
}

TEST_F(AsyncClientTest, ABodyThatFallsSilentIsGivenUp) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), server.path(), "the server");
  std::optional<Result<Response>> answer;

  const AsyncCall call =
      client.stream({}, {.silence = kSoon}, [](std::string_view) { return true; }, into(answer));

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().what, "the server sent nothing more within 50 ms");
}

TEST_F(AsyncClientTest, BytesThatAreNotHttpAreAnError) {
  RawServer server([](RawConnection& connection) {
    connection.send("SSH-2.0-OpenSSH_9.2\r\n");
    connection.read_to_the_end();
  });

  const auto answer = ask(server.path());

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInternal);
  EXPECT_TRUE(answer.error().what.starts_with("the server: ")) << answer.error().what;
}

TEST_F(AsyncClientTest, ServersThatLeaveEarlyAreReportedToHaveLeft) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "the server closed the connection without an answer"},
      {"HTTP/1.1 20", "the server closed the connection in the middle of its answer"},
      {"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
       "the server closed the connection in the middle of its answer"},
      {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
       "the server closed the connection in the middle of its answer"}};
  for (const auto& [answered, what] : cases) {
    RawServer server([&](RawConnection& connection) {
      connection.read_head();
      connection.send(answered);
    });

    const auto answer = ask(server.path());

    ASSERT_FALSE(answer) << answered;
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(answer.error().what, what) << answered;
  }
}

TEST_F(AsyncClientTest, AnAnswerOfTooManyBytesIsNotKept) {
  for (const std::string& head :
       {std::string("content-length: 100000000\r\n\r\n"), std::string("\r\n")}) {
    RawServer server([&](RawConnection& connection) {
      connection.read_head();
      connection.send("HTTP/1.1 200 OK\r\n" + head);
      while (connection.send(std::string(1 << 20, 'x'))) {
      }
    });

    const auto answer = ask(server.path(), {}, {.body_bytes = 5 << 20});

    ASSERT_FALSE(answer) << head;
    EXPECT_EQ(answer.error().code, ErrorCode::kExhausted);
    EXPECT_EQ(answer.error().what, "the server: the server's answer is longer than 5242880 bytes");
  }
}

TEST_F(AsyncClientTest, AHeadWithoutEndIsRefused) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\n");
    while (connection.send("x-more: " + std::string(1000, 'x') + "\r\n")) {
    }
  });

  const auto answer = ask(server.path());

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace muster::http
