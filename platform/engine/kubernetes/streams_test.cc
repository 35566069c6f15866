#include "engine/kubernetes/streams.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "base/test_loop.h"
#include "engine/kubernetes/test_fake_api_server.h"
#include "http/websocket.h"

namespace muster::engine::kubernetes {
namespace {

using base::ErrorCode;
using base::Result;
using http::WebSocket;
using std::chrono::milliseconds;

const std::string kExec = "GET /api/v1/namespaces/lab/pods/x/exec";
const std::string kForward = "GET /api/v1/namespaces/lab/pods/x/portforward";
const std::string kSuccess = R"({"kind":"Status","status":"Success"})";

std::string on_channel(char channel, const std::string& bytes) {
  return channel + bytes;
}

class StreamsTest : public testing::Test, protected base::TestLoop {
 protected:
  using Script = std::function<void(WebSocket& socket, const std::string& message)>;

  StreamsTest() {
    client_ = std::make_unique<ApiClient>(
        loop(), std::make_unique<FakeAccess>(server_.socket()),
        ApiOptions{.patience = milliseconds(0), .first_pause = milliseconds(1)});
  }

  /// Answers with a WebSocket; `begin` is called first, with an empty message, then `script` for
  /// each message.
  static FakeApiServer::Answer socket(const std::string& protocol, Script begin,
                                      Script script = nullptr) {
    return [=](const http::Request&) {
      http::Response answer;
      answer.headers["sec-websocket-protocol"] = protocol;
      answer.websocket = [=](const std::shared_ptr<WebSocket>& socket) {
        begin(*socket, "");
        socket->set_handlers({.on_message =
                                  [socket, script](WebSocket::Kind, const std::string& message) {
                                    if (script) script(*socket, message);
                                  },
                              .on_close = [] {},
                              .on_drain = {}});
      };
      return answer;
    };
  }
  static void send(WebSocket& socket, char channel, const std::string& bytes) {
    socket.send(WebSocket::Kind::kBinary, on_channel(channel, bytes));
  }

  Result<std::unique_ptr<PodStream>> exec(PodCommand command) {
    command.space = "lab";
    command.pod = "x";
    if (command.argv.empty()) command.argv = {"ls", "-l"};
    return answer<std::unique_ptr<PodStream>>([&](auto then) {
      call_ = open_stream(*client_, command,
                          {.on_output =
                               [this](std::string_view bytes, bool is_error) {
                                 (is_error ? errors_ : output_) += bytes;
                                 look();
                               },
                           .on_end = into(end_)},
                          then);
    });
  }

  Result<std::unique_ptr<node::PeerStream>> forward(uint16_t port = 7) {
    return answer<std::unique_ptr<node::PeerStream>>(
        [&](auto then) { call_ = open_port(*client_, "lab", "x", port, then); });
  }

  FakeApiServer server_;
  std::unique_ptr<ApiClient> client_;
  Call call_;
  std::string output_;
  std::string errors_;
  std::optional<Result<CommandEnd>> end_;
};

TEST_F(StreamsTest, ACommandHasOutputErrorsAndACode) {
  server_.on(kExec, socket("v5.channel.k8s.io", [](WebSocket& socket, const std::string&) {
               send(socket, 1, "");
               send(socket, 1, "out");
               send(socket, 2, "err");
               send(socket, 3, R"({"kind":"Status","status":"Failure","reason":"NonZeroExitCode",
                        "message":"command terminated with exit code 3",
                        "details":{"causes":[{"reason":"ExitCode","message":"3"}]}})");
               socket.close(1000, "");
             }));

  const auto stream = exec({.container = "main"});

  ASSERT_TRUE(stream) << stream.error().to_string();
  ASSERT_TRUE(run_until([&] { return end_.has_value(); }));
  ASSERT_TRUE(*end_) << end_->error().to_string();
  EXPECT_EQ((*end_)->exit_code, 3);
  EXPECT_EQ(output_, "out");
  EXPECT_EQ(errors_, "err");
  const http::Request request = server_.asked().front();
  EXPECT_EQ(request.headers.at("sec-websocket-protocol"), "v5.channel.k8s.io, v4.channel.k8s.io");
  EXPECT_EQ(request.headers.at("authorization"), "Bearer old");
  EXPECT_EQ(request.query.count("command"), 2U);
  EXPECT_EQ(request.query.at("container"), "main");
  EXPECT_FALSE(request.query.contains("stdin"));
}

TEST_F(StreamsTest, InputIsSentAndClosed) {
  server_.on(kExec, socket(
                        "v5.channel.k8s.io", [](WebSocket&, const std::string&) {},
                        [](WebSocket& socket, const std::string& message) {
                          if (message != std::string("\xFF\0", 2)) {
                            return send(socket, 1, message.substr(1));
                          }
                          send(socket, 3, kSuccess);
                          socket.close(1000, "");
                        }));
  const auto stream = exec({.has_input = true});
  ASSERT_TRUE(stream);
  const std::string large(100'000, 'x');
  (*stream)->write(large);
  EXPECT_TRUE((*stream)->close_input());
  ASSERT_TRUE(run_until([&] { return end_.has_value(); }));
  EXPECT_EQ((*end_)->exit_code, 0);
  EXPECT_EQ(output_, large);
}

TEST_F(StreamsTest, AnOlderServerCannotCloseTheInputAlone) {
  server_.on(kExec, socket("v4.channel.k8s.io", [](WebSocket&, const std::string&) {}));
  const auto stream = exec({.has_input = true});
  ASSERT_TRUE(stream);
  EXPECT_EQ((*stream)->protocol(), "v4.channel.k8s.io");
  EXPECT_FALSE((*stream)->close_input());
}

TEST_F(StreamsTest, ATerminalIsResized) {
  server_.on(kExec,
             socket(
                 "v5.channel.k8s.io", [](WebSocket&, const std::string&) {},
                 [](WebSocket& socket, const std::string& message) { send(socket, 1, message); }));
  const auto stream = exec({.has_input = true, .has_terminal = true});
  ASSERT_TRUE(stream);
  (*stream)->resize(80, 24);
  const std::string expected = "\x04{\"Height\":24,\"Width\":80}";
  EXPECT_TRUE(run_until([&] { return output_ == expected; }));
  EXPECT_FALSE(server_.asked().front().query.contains("stderr"));
}

TEST_F(StreamsTest, AConnectionThatBreaksIsNoEndOfTheCommand) {
  server_.on(kExec, socket("v5.channel.k8s.io", [](WebSocket& socket, const std::string&) {
               send(socket, 1, "half");
               socket.close(1011, "");
             }));
  const auto stream = exec({});
  ASSERT_TRUE(stream);
  ASSERT_TRUE(run_until([&] { return end_.has_value(); }));
  ASSERT_FALSE(*end_);
  EXPECT_EQ(end_->error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(output_, "half");
}

TEST_F(StreamsTest, AProgramThatCannotBeStartedIsExplained) {
  server_.on(kExec, socket("v5.channel.k8s.io", [](WebSocket& socket, const std::string&) {
               send(socket, 3,
                    R"({"kind":"Status","status":"Failure","message":"exec: \"ls\": not found",
                        "reason":"InternalError","code":500})");
               socket.close(1000, "");
             }));
  const auto stream = exec({});
  ASSERT_TRUE(stream);
  ASSERT_TRUE(run_until([&] { return end_.has_value(); }));
  ASSERT_TRUE(*end_);
  EXPECT_FALSE((*end_)->exit_code);
  EXPECT_EQ((*end_)->error, "exec: \"ls\": not found");
}

TEST_F(StreamsTest, ARefusalHasTheServersWords) {
  server_.on(kExec, FakeApiServer::refusal(403, "Forbidden", "cannot create pods/exec"));
  const auto stream = exec({});
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, ErrorCode::kRefused);
  EXPECT_EQ(stream.error().what,
            "cannot run a command in pods 'x' in namespace 'lab': the API server at "
            "https://fake:6443 answered: cannot create pods/exec");
}

TEST_F(StreamsTest, APortIsAByteStream) {
  server_.on(kForward, socket(
                           "v4.channel.k8s.io",
                           [](WebSocket& socket, const std::string&) {
                             send(socket, 0, std::string("\x07\0", 2));
                             send(socket, 1, std::string("\x07\0", 2));
                             send(socket, 0, "hello ");
                           },
                           [](WebSocket& socket, const std::string& message) {
                             send(socket, 0, message.substr(1));
                           }));
  const auto port = forward();
  ASSERT_TRUE(port) << port.error().to_string();
  std::string received;
  (*port)->listen({.on_bytes =
                       [&](std::string_view bytes) {
                         received += bytes;
                         look();
                       },
                   .on_end = [](const std::string&) { ADD_FAILURE(); }});
  (*port)->write("world");
  EXPECT_TRUE(run_until([&] { return received == "hello world"; })) << received;
  EXPECT_EQ(server_.asked().front().query.at("ports"), "7");
  EXPECT_EQ(server_.asked().front().headers.at("sec-websocket-protocol"), "v4.channel.k8s.io");
}

TEST_F(StreamsTest, APortThatRefusesEndsWithTheKubeletsWords) {
  server_.on(kForward, socket("v4.channel.k8s.io", [](WebSocket& socket, const std::string&) {
               send(socket, 0, std::string("\x07\0", 2));
               send(socket, 1, std::string("\x07\0", 2) + "connection refused");
               socket.close(1000, "");
             }));
  const auto port = forward();
  ASSERT_TRUE(port);
  std::optional<std::string> why;
  (*port)->listen({.on_bytes = [](std::string_view) { ADD_FAILURE(); },
                   .on_end =
                       [&](const std::string& reason) {
                         why = reason;
                         look();
                       }});
  ASSERT_TRUE(run_until([&] { return why.has_value(); }));
  EXPECT_EQ(*why, "closed the connection: connection refused");
}

TEST_F(StreamsTest, AHandlerMayDropItsConnection) {
  server_.on(kForward, socket("v4.channel.k8s.io", [](WebSocket& socket, const std::string&) {
               send(socket, 0, std::string("\x07\0", 2) + "a");
               send(socket, 0, "b");
             }));
  auto port = forward();
  ASSERT_TRUE(port);
  bool done = false;
  (*port)->listen({.on_bytes =
                       [&](std::string_view) {
                         EXPECT_FALSE(done);
                         port->reset();
                         done = true;
                         look();
                       },
                   .on_end = [](const std::string&) { ADD_FAILURE(); }});
  EXPECT_TRUE(run_until([&] { return done; }));
}

TEST_F(StreamsTest, AProgramIsAByteStream) {
  server_.on(kExec, socket(
                        "v5.channel.k8s.io",
                        [](WebSocket& socket, const std::string&) { send(socket, 1, "ready "); },
                        [](WebSocket& socket, const std::string& message) {
                          send(socket, 1, message.substr(1));
                          send(socket, 2, "it failed\n");
                          send(socket, 3, R"({"status":"Failure","details":{"causes":[
                                              {"reason":"ExitCode","message":"9"}]}})");
                          socket.close(1000, "");
                        }));
  const auto program = answer<std::unique_ptr<node::PeerStream>>([&](auto then) {
    call_ = open_program(*client_, "lab", "x", "main", {"muster-node"}, then);
  });
  ASSERT_TRUE(program) << program.error().to_string();
  std::string received;
  std::optional<std::string> why;
  (*program)->listen({.on_bytes = [&](std::string_view bytes) { received += bytes; },
                      .on_end =
                          [&](const std::string& reason) {
                            why = reason;
                            look();
                          }});
  (*program)->write("steady");
  ASSERT_TRUE(run_until([&] { return why.has_value(); }));
  EXPECT_EQ(received, "ready steady");
  EXPECT_EQ(*why, "ended the program with exit code 9: it failed");
}

}  // namespace
}  // namespace muster::engine::kubernetes
