// The client's end of a WebSocket on the event loop.
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/test_loop.h"
#include "base/text.h"
#include "http/test_async_client.h"
#include "http/test_raw_server.h"
#include "http/test_tls.h"
#include "http/websocket.h"

namespace muster::http {
namespace {

using base::ErrorCode;
using base::Result;

/// Sends each message back; "close" closes the connection.
Handler echoing(std::string protocol = "") {
  return [protocol](const Request&, const Respond& respond) {
    Response answer;
    if (!protocol.empty()) answer.headers["sec-websocket-protocol"] = protocol;
    answer.websocket = [](const std::shared_ptr<WebSocket>& socket) {
      socket->set_handlers({.on_message =
                                [socket](WebSocket::Kind kind, std::string message) {
                                  if (message == "close") return socket->close(1000, "");
                                  socket->send(kind, std::move(message));
                                },
                            .on_close = [] {},
                            .on_drain = {}});
    };
    respond(std::move(answer));
  };
}

/// RFC 6455, 4.2.2: the key and a constant, hashed.
std::string accept_key(const std::string& key) {
  const std::string text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, 20> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return base::to_base64({reinterpret_cast<const char*>(digest.data()), size});
}

class AsyncWebSocket : public AsyncClientTest {
 protected:
  Result<WebSocketAnswer> open(const AsyncPlace& place, WebSocketRequest request = {},
                               const AsyncLimits& limits = {}) {
    return answer<WebSocketAnswer>([&](auto then) {
      handle_ = open_websocket(loop(), place, "the server", std::move(request), limits, then);
    });
  }

  void listen(WebSocket& socket) {
    socket.set_handlers({.on_message =
                             [this](WebSocket::Kind, std::string message) {
                               messages_.push_back(std::move(message));
                               look();
                             },
                         .on_close =
                             [this] {
                               is_closed_ = true;
                               look();
                             },
                         .on_drain = [this] { ++drains_; }});
  }

  std::shared_ptr<void> handle_;
  std::vector<std::string> messages_;
  bool is_closed_ = false;
  int drains_ = 0;
};

TEST_F(AsyncWebSocket, CarriesMessagesBothWays) {
  TestServer server(echoing("two"));
  const auto opened = open(server.socket(), {.target = "/ws?a=b", .protocols = {"one", "two"}});
  ASSERT_TRUE(opened) << opened.error().to_string();
  ASSERT_NE(opened->socket, nullptr) << opened->answer.body;
  EXPECT_EQ(opened->protocol, "two");
  listen(*opened->socket);
  const std::string large(300'000, 'x');
  opened->socket->send(WebSocket::Kind::kBinary, "hello");
  opened->socket->send(WebSocket::Kind::kBinary, large);
  ASSERT_TRUE(run_until([&] { return messages_.size() == 2; }));
  EXPECT_EQ(messages_[0], "hello");
  EXPECT_EQ(messages_[1], large);
  EXPECT_EQ(drains_, 1);

  opened->socket->send(WebSocket::Kind::kText, "close");
  EXPECT_TRUE(run_until([&] { return is_closed_; }));
}

TEST_F(AsyncWebSocket, WorksOverTls) {
  TlsTestServer server(echoing());
  const auto context = client_context(server.trusted("localhost"));
  ASSERT_TRUE(context);
  const auto opened =
      open(TlsPlace{.host = "localhost", .port = server.port(), .context = *context});
  ASSERT_TRUE(opened) << opened.error().to_string();
  ASSERT_NE(opened->socket, nullptr);
  listen(*opened->socket);
  opened->socket->send(WebSocket::Kind::kBinary, "hello");
  EXPECT_TRUE(run_until([&] { return messages_.size() == 1; }));
}

TEST_F(AsyncWebSocket, ARefusalComesWithItsBody) {
  TestServer server([](const Request& request, const Respond& respond) {
    respond({.status = 403, .body = "not you: " + request.headers.at("x-mine")});
  });
  const auto opened = open(server.socket(), {.headers = {{"x-mine", "me"}}});
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_EQ(opened->socket, nullptr);
  EXPECT_EQ(opened->answer.status, 403);
  EXPECT_EQ(opened->answer.body, "not you: me");
}

TEST_F(AsyncWebSocket, AnAnswerThatDoesNotMatchTheRequestIsNoWebSocket) {
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    connection.send(
        "HTTP/1.1 101 x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        "sec-websocket-accept: bad\r\n\r\n");
  });
  const auto opened = open(server.path());
  EXPECT_FALSE(opened && opened->socket != nullptr);
}

TEST_F(AsyncWebSocket, AServerThatDoesNotAnswerIsGivenUp) {
  RawServer silent([](RawConnection& connection) { connection.read_to_the_end(); });
  const auto opened = open(silent.path(), {}, {.answer = kSoon});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(opened.error().what, "the server does not answer within 50 ms");
  EXPECT_EQ(open("/no/such/socket").error().code, ErrorCode::kUnavailable);
}

TEST_F(AsyncWebSocket, ADroppedSocketClosesTheConnection) {
  TestServer server(echoing());
  auto opened = open(server.socket());
  ASSERT_TRUE(opened && opened->socket != nullptr);
  bool done = false;
  opened->socket->set_handlers({.on_message =
                                    [&](WebSocket::Kind, const std::string&) {
                                      opened->socket.reset();
                                      done = true;
                                      look();
                                    },
                                .on_close = [] { ADD_FAILURE(); },
                                .on_drain = {}});
  opened->socket->send(WebSocket::Kind::kText, "hello");
  ASSERT_TRUE(run_until([&] { return done; }));
  while (server.connections() > 0) wait_longer_than_soon();
}

TEST_F(AsyncWebSocket, ASocketThatIsDroppedRightAfterItsEndReportsNothing) {
  TestServer server(echoing());
  auto opened = open(server.socket());
  ASSERT_TRUE(opened && opened->socket != nullptr);
  opened->socket->set_handlers({.on_message = [](WebSocket::Kind, const std::string&) {},
                                .on_close = [] { ADD_FAILURE(); },
                                .on_drain = {}});
  server.on_loop([&] { server.server().close(); });
  // The loop finds both at once: the end of the connection, and then the timer.
  bool is_dropped = false;
  const auto timer = loop().after(std::chrono::nanoseconds(0), [&] {
    opened->socket.reset();
    is_dropped = true;
    look();
  });
  ASSERT_TRUE(run_until([&] { return is_dropped; }));
  wait_longer_than_soon();
}

TEST_F(AsyncWebSocket, ADroppedRequestAnswersNothing) {
  TestServer server(echoing());
  handle_ = open_websocket(loop(), server.socket(), "the server", {}, {},
                           [](const auto&) { ADD_FAILURE(); });
  handle_.reset();
  wait_longer_than_soon();
}

/// The answer to a request to upgrade, for a server that does nothing else.
std::string accepted(const std::string& head) {
  // The client checks only that the answer matches its key.
  const size_t key = base::lower_case(head).find("sec-websocket-key: ") + 19;
  return "HTTP/1.1 101 x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: " +
         accept_key(head.substr(key, head.find('\r', key) - key)) + "\r\n\r\n";
}

TEST_F(AsyncWebSocket, AServerThatAnswersNoPingHasVanished) {
  RawServer server([](RawConnection& connection) {
    connection.send(accepted(connection.read_head()));
    connection.read_to_the_end();
  });
  const auto opened = open(server.path(), {.ping_every = std::chrono::seconds(1),
                                           .vanished_after = std::chrono::seconds(1)});
  ASSERT_TRUE(opened && opened->socket != nullptr);
  listen(*opened->socket);
  EXPECT_TRUE(run_until([&] { return is_closed_; }));
}

TEST_F(AsyncWebSocket, AServerThatAnswersPingsStays) {
  TestServer server(echoing());
  const auto opened = open(server.socket(), {.ping_every = std::chrono::seconds(1),
                                             .vanished_after = std::chrono::seconds(3)});
  ASSERT_TRUE(opened && opened->socket != nullptr);
  listen(*opened->socket);
  // An unanswered ping would be noticed in this time: it is sent within two seconds.
  bool waited = false;
  const auto timer = loop().after(std::chrono::milliseconds(6500), [&] {
    waited = true;
    look();
  });
  ASSERT_TRUE(run_until([&] { return waited; }));
  EXPECT_FALSE(is_closed_);
}

TEST_F(AsyncWebSocket, NothingIsReadWhilePaused) {
  TestServer server(echoing());
  const auto opened = open(server.socket());
  ASSERT_TRUE(opened && opened->socket != nullptr);
  opened->socket->pause(true);
  listen(*opened->socket);
  opened->socket->send(WebSocket::Kind::kText, "hello");
  wait_longer_than_soon();
  EXPECT_TRUE(messages_.empty());
  opened->socket->pause(false);
  EXPECT_TRUE(run_until([&] { return messages_.size() == 1; }));
}

}  // namespace
}  // namespace muster::http
