// WebSockets of the client and the server, and the server with clients that break the rules.
#include "http/websocket.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>

#include "http/server_connection.h"
#include "http/test_byte_stream.h"
#include "http/test_tls.h"

namespace muster::http {
namespace {

using base::ErrorCode;
using Kind = WebSocket::Kind;

/// A handler that opens a WebSocket and hands it to `on_open`.
Handler opening(std::function<void(std::shared_ptr<WebSocket>)> on_open) {
  return [on_open = std::move(on_open)](const Request&, const Respond& respond) {
    respond({.headers = {{"x-extra", "1"}}, .websocket = on_open});
  };
}

/// Sends each message back. The message "close" closes the WebSocket.
class Echo {
 public:
  Handler handler() {
    return opening([this](const std::shared_ptr<WebSocket>& socket) {
      socket->set_handlers({.on_message =
                                [socket](Kind kind, std::string message) {
                                  if (message == "close") return socket->close(4001, "as asked");
                                  socket->send(kind, std::move(message));
                                },
                            .on_close = [this] { closed_.set_value(); },
                            .on_drain = {}});
    });
  }
  bool is_closed() { return closed_.get_future().wait_for(kPatience) == std::future_status::ready; }

 private:
  std::promise<void> closed_;
};

template <class Place>
std::unique_ptr<WebSocketClient> client_of(const Place& place) {
  Response refusal;
  auto client = WebSocketClient::open(place, {.path = "/ws"}, refusal);
  EXPECT_TRUE(client) << client.error().to_string() << refusal.body;
  return client ? *std::move(client) : nullptr;
}

std::string received_by(WebSocketClient& client) {
  const auto message = client.receive({});
  EXPECT_TRUE(message) << message.error().to_string();
  return message && *message ? (*message)->data : "nothing";
}

template <class Place>
void expect_echo(const Place& place) {
  const auto client = client_of(place);
  ASSERT_NE(client, nullptr);
  const std::string large(900'000, 'x');

  ASSERT_TRUE(client->send(Kind::kText, "hello"));
  ASSERT_TRUE(client->send(Kind::kBinary, std::string_view("\0\xFF", 2)));
  ASSERT_TRUE(client->send(Kind::kBinary, ""));
  ASSERT_TRUE(client->send(Kind::kBinary, large));

  const auto first = client->receive({});
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->kind, Kind::kText);
  EXPECT_EQ((*first)->data, "hello");
  const auto second = client->receive({});
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->kind, Kind::kBinary);
  EXPECT_EQ((*second)->data, std::string("\0\xFF", 2));
  EXPECT_EQ(received_by(*client), "");
  EXPECT_EQ(received_by(*client), large);
}

TEST(WebSocket, CarriesMessagesBothWaysOverAUnixSocket) {
  Echo echo;
  TestServer server(echo.handler());
  expect_echo(server.socket());
  EXPECT_TRUE(echo.is_closed());
}

TEST(WebSocket, CarriesMessagesBothWaysOverTls) {
  Echo echo;
  TlsTestServer server(echo.handler());
  expect_echo(server.pinned());
  EXPECT_TRUE(echo.is_closed());
}

TEST(WebSocket, SendsTheReasonWhenItCloses) {
  Echo echo;
  TestServer server(echo.handler());
  const auto client = client_of(server.socket());

  ASSERT_TRUE(client->send(Kind::kText, "close"));
  const auto message = client->receive({});

  ASSERT_TRUE(message) << message.error().to_string();
  EXPECT_FALSE(*message);
  EXPECT_EQ(client->close_code(), 4001);
  EXPECT_TRUE(echo.is_closed());
  while (server.connections() > 0) std::this_thread::yield();
}

TEST(WebSocket, SendsPendingMessagesBeforeItCloses) {
  const std::string large(1 << 20, 'x');
  TestServer server(opening([&](const std::shared_ptr<WebSocket>& socket) {
    for (int i = 0; i < 10; ++i) socket->send(Kind::kBinary, large);
    socket->close(1000, "done");
    socket->send(Kind::kBinary, "too late");
  }));
  const auto client = client_of(server.socket());

  for (int i = 0; i < 10; ++i) EXPECT_EQ(received_by(*client).size(), large.size());
  const auto end = client->receive({});
  ASSERT_TRUE(end) << end.error().to_string();
  EXPECT_FALSE(*end);
  EXPECT_EQ(client->close_code(), 1000);
}

TEST(WebSocket, ReportsWhenItAcceptsMessagesAgain) {
  constexpr size_t kMessages = 200;
  const std::string message(64 << 10, 'x');
  size_t sent = 0;
  size_t most_waiting = 0;
  std::function<void()> send_more;
  TestServer server(opening([&](const std::shared_ptr<WebSocket>& socket) {
    send_more = [&, raw = socket.get()] {
      while (sent < kMessages && raw->waiting() <= WebSocket::kHigh) {
        raw->send(Kind::kBinary, message);
        most_waiting = std::max(most_waiting, raw->waiting());
        ++sent;
      }
      if (sent == kMessages) raw->close(1000, "");
    };
    socket->set_handlers({.on_message = {}, .on_close = {}, .on_drain = [&] { send_more(); }});
    send_more();
  }));
  const auto client = client_of(server.socket());
  size_t received = 0;

  while (true) {
    const auto next = client->receive({});
    ASSERT_TRUE(next) << next.error().to_string();
    if (!*next) break;
    received += (*next)->data.size();
  }

  EXPECT_EQ(received, kMessages * message.size());
  EXPECT_LE(most_waiting, WebSocket::kHigh + message.size());
}

TEST(WebSocket, DoesNotReadWhileItIsPaused) {
  std::shared_ptr<WebSocket> open;
  std::atomic<int> messages = 0;
  TestServer server(opening([&](std::shared_ptr<WebSocket> socket) {
    open = std::move(socket);
    open->set_handlers({.on_message =
                            [&](Kind, const std::string& message) {
                              ++messages;
                              open->pause(true);
                              open->send(Kind::kText, message);
                            },
                        .on_close = {},
                        .on_drain = {}});
  }));
  const auto client = client_of(server.socket());
  ASSERT_TRUE(client->send(Kind::kText, "1"));
  ASSERT_TRUE(client->send(Kind::kText, "2"));
  EXPECT_EQ(received_by(*client), "1");
  for (int i = 0; i < 100; ++i) server.on_loop([] {});
  EXPECT_EQ(messages, 1);

  server.on_loop([&] { open->pause(false); });

  EXPECT_EQ(received_by(*client), "2");
  server.on_loop([&] { open.reset(); });
}

TEST(WebSocket, LetsTheClientSendMoreThanItReads) {
  Echo echo;  // its answers fill every buffer, because the client does not read them
  TestServer server(echo.handler());
  const auto client = client_of(server.socket());
  const std::string message(512 << 10, 'x');

  for (int i = 0; i < 40; ++i) ASSERT_TRUE(client->send(Kind::kBinary, message));

  for (int i = 0; i < 40; ++i) ASSERT_EQ(received_by(*client).size(), message.size());
}

/// Takes the first message, and the others only after go_on(). Answers text with the number of bytes
/// received.
class Slow {
 public:
  Handler handler() {
    return opening([this](std::shared_ptr<WebSocket> socket) {
      open_ = std::move(socket);
      open_->set_handlers({.on_message =
                               [this](Kind kind, const std::string& message) {
                                 if (kind == Kind::kText) {
                                   return open_->send(kind, std::to_string(bytes_));
                                 }
                                 if (bytes_ == 0) open_->pause(true);
                                 if (bytes_ == 0) open_->send(Kind::kText, "paused");
                                 bytes_ += message.size();
                               },
                           .on_close = {},
                           .on_drain = {}});
    });
  }
  void go_on() { open_->pause(false); }
  void end() { open_.reset(); }

 private:
  std::shared_ptr<WebSocket> open_;
  size_t bytes_ = 0;
};

template <class Server, class Place>
void expect_queueing(Server& server, Slow& slow, const Place& place) {
  const auto client = client_of(place);
  ASSERT_NE(client, nullptr);
  const std::string message(64 << 10, 'x');
  int drained = 0;
  client->queue_messages([&] { ++drained; });
  size_t sent = 0;
  while (client->waiting() <= WebSocket::kHigh) {
    ASSERT_TRUE(client->send(Kind::kBinary, message));
    sent += message.size();
  }
  ASSERT_TRUE(client->send(Kind::kText, "how many?"));
  const int drained_before = drained;

  EXPECT_EQ(received_by(*client), "paused");
  server.on_loop([&] { slow.go_on(); });

  EXPECT_EQ(received_by(*client), std::to_string(sent));
  EXPECT_EQ(client->waiting(), 0U);
  EXPECT_GT(drained, drained_before);
  server.on_loop([&] { slow.end(); });
}

TEST(WebSocket, QueuesWhatTheServerDoesNotTakeAndReceivesMeanwhile) {
  Slow slow;
  TestServer server(slow.handler());
  expect_queueing(server, slow, server.socket());
}

TEST(WebSocket, QueuesMessagesOverTls) {
  Slow slow;
  TlsTestServer server(slow.handler());
  expect_queueing(server, slow, server.pinned());
}

TEST(WebSocket, ServesWakesWhileItReceives) {
  Echo echo;
  TestServer server(echo.handler());
  const auto client = client_of(server.socket());
  const base::UniqueFd event(::eventfd(1, EFD_CLOEXEC));
  int wakes = 0;
  const Wake wake{.fd = event.get(), .on_wake = [&] {
                    if (++wakes == 2) return false;
                    eventfd_t count = 0;
                    EXPECT_EQ(::eventfd_read(event.get(), &count), 0);
                    EXPECT_TRUE(client->send(Kind::kText, "from within"));
                    return true;
                  }};

  const auto message = client->receive(wake);
  ASSERT_TRUE(message && *message);
  EXPECT_EQ((*message)->data, "from within");
  ASSERT_EQ(::eventfd_write(event.get(), 1), 0);
  const auto left = client->receive(wake);

  ASSERT_TRUE(left) << left.error().to_string();
  EXPECT_FALSE(*left);
  EXPECT_EQ(wakes, 2);
}

TEST(WebSocket, IsRefusedToAClientWithoutTheRight) {
  TestServer server([](const Request& request, const Respond& respond) {
    respond({.status = 403, .body = "not for " + request.headers.at("x-who")});
  });
  Response refusal;

  const auto client = WebSocketClient::open(
      server.socket(), {.path = "/a b", .headers = {{"x-who", "you"}}}, refusal);

  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kRefused);
  EXPECT_EQ(refusal.status, 403);
  EXPECT_EQ(refusal.body, "not for you");
}

TEST(WebSocket, APlainRequestForItIsAnsweredWith426) {
  Echo echo;
  TestServer server(echo.handler());
  BlockingClient client(server.socket());

  const auto response = client.send({});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 426);
  EXPECT_EQ(response->headers.at("upgrade"), "websocket");
  EXPECT_EQ(client.send({})->status, 426);  // the connection can still be used
}

// The following tests speak the protocol byte by byte (RFC 6455, 5.2).

constexpr std::string_view kUpgrade =
    "GET / HTTP/1.1\r\nhost: h\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
    "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/// A client's frame, masked with zeros: the bytes stay as they are.
std::string frame(int first_byte, std::string_view payload) {
  std::string bytes(1, static_cast<char>(first_byte));
  bytes += static_cast<char>(0x80 | (payload.size() < 126 ? payload.size() : 127));
  if (payload.size() >= 126) {
    for (int shift = 56; shift >= 0; shift -= 8) {
      bytes += static_cast<char>(static_cast<uint64_t>(payload.size()) >> shift & 0xff);
    }
  }
  return bytes + std::string(4, '\0') + std::string(payload);
}

constexpr int kText = 0x81;
constexpr int kTextThatGoesOn = 0x01;
constexpr int kGoingOn = 0x00;
constexpr int kLastPart = 0x80;
constexpr int kPing = 0x89;
constexpr int kClose = 0x88;

TEST(WebSocket, AnswersWithTheHeadersOfTheResponse) {
  Echo echo;
  TestServer server(echo.handler());
  RawClient client(server.socket());

  client.send(kUpgrade);

  const std::string head = client.read_to("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << head;
  EXPECT_NE(head.find("x-extra: 1\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("ICX+Yqv66kxgM0FcWaLWlFLwTAI="), std::string::npos) << head;
}

TEST(WebSocket, ReadsBytesThatArriveRightAfterTheRequest) {
  Echo echo;
  TestServer server(echo.handler());
  RawClient client(server.socket());

  client.send(std::string(kUpgrade) + frame(kText, "early"));

  EXPECT_TRUE(
      client.read_to("early").ends_with("\x81\x05"
                                        "early"));
}

TEST(WebSocket, JoinsMessagesThatComeInParts) {
  Echo echo;
  TestServer server(echo.handler());
  RawClient client(server.socket());
  client.send(kUpgrade);
  client.read_to("\r\n\r\n");

  client.send(frame(kTextThatGoesOn, "one "));
  client.send(frame(kPing, "?"));
  client.send(frame(kGoingOn, "two "));
  client.send(frame(kLastPart, "three"));

  EXPECT_EQ(client.read_to("three"), "\x8A\x01?\x81\x0Done two three");
}

TEST(WebSocket, ClosesOnAMessageThatIsTooLarge) {
  Echo echo;
  TestServer server(echo.handler());
  RawClient client(server.socket());
  client.send(kUpgrade);
  client.read_to("\r\n\r\n");

  client.send(frame(kText, std::string((1 << 20) + 1, 'x')));

  EXPECT_EQ(client.read_to_the_end().substr(0, 4), "\x88\x02\x03\xF1");  // 1009
  EXPECT_TRUE(echo.is_closed());
}

TEST(WebSocket, ClosesOnAProtocolViolation) {
  for (const std::string& rubbish :
       {std::string("\x81\x05hello"),        // not masked
        frame(0x83, "?"), frame(0xF1, "?"),  // reserved
        frame(kText, "\xFF"),
        frame(kGoingOn, "?")}) {  // invalid UTF-8; a continuation without a message
    Echo echo;
    TestServer server(echo.handler());
    RawClient client(server.socket());
    client.send(kUpgrade);
    client.read_to("\r\n\r\n");

    client.send(rubbish);

    EXPECT_EQ(client.read_to_the_end().substr(0, 1), "\x88");
    EXPECT_TRUE(echo.is_closed());
  }
}

TEST(WebSocket, DoesNotResetAConnectionWhoseClientSendsAfterTheClose) {
  Echo echo;
  TlsTestServer server(echo.handler());
  RawTlsClient client(server);
  client.send(kUpgrade);
  client.read_to("\r\n\r\n");

  client.send(frame(kClose, "\x03\xE8"));  // 1000
  EXPECT_EQ(client.read_to("\x03\xE8"), "\x88\x02\x03\xE8");
  client.send("late");

  EXPECT_TRUE(client.ends_in_order());
  EXPECT_TRUE(echo.is_closed());
}

TEST(WebSocket, DetectsAClientThatDisappearsWithoutAClose) {
  Echo echo;
  TestServer server(echo.handler());
  RawClient client(server.socket());
  client.send(kUpgrade);
  client.read_to("\r\n\r\n");

  client.leave();

  EXPECT_TRUE(echo.is_closed());
  EXPECT_EQ(server.connections(), 0U);
}

TEST(WebSocket, NoticesAClientThatGivesNoSignOfLife) {
  Echo echo;
  TestServer server(echo.handler(), {.request_timeout = std::chrono::seconds(1)});
  RawClient client(server.socket());
  client.send(kUpgrade);
  client.read_to("\r\n\r\n");

  EXPECT_EQ(client.read_to_the_end(), std::string("\x89\x00", 2));  // a ping and nothing else
  EXPECT_TRUE(echo.is_closed());
}

TEST(WebSocket, KeepsAClientThatReadsNothingForAWhile) {
  const std::string large(1 << 20, 'x');
  int opened = 0;
  TestServer server(opening([&](const std::shared_ptr<WebSocket>& socket) {
                      const int number = opened++;
                      if (number == 0) socket->send(Kind::kText, "fits into the kernel's buffer");
                      for (int i = 0; number == 1 && i < 10; ++i) {
                        socket->send(Kind::kBinary, large);
                      }
                    }),
                    {.request_timeout = std::chrono::seconds(1)});
  const auto small_reader = client_of(server.socket());
  const auto large_reader = client_of(server.socket());
  ASSERT_TRUE(small_reader != nullptr && large_reader != nullptr);

  // The server drops this client, which came last, at its third tick: the others had theirs before.
  RawClient silent(server.socket());
  silent.send(kUpgrade);
  silent.read_to_the_end();

  while (server.connections() > 2) std::this_thread::yield();
  EXPECT_EQ(server.connections(), 2U);
  EXPECT_EQ(received_by(*small_reader), "fits into the kernel's buffer");
  for (int i = 0; i < 10; ++i) ASSERT_EQ(received_by(*large_reader).size(), large.size());
}

/// A WebSocket that its handler pauses at once. A tick of its timer takes no time.
class PausedWebSocket : public testing::Test {
 protected:
  void start() {
    Request upgrade{.headers = {{"host", "h"},
                                {"connection", "upgrade"},
                                {"upgrade", "websocket"},
                                {"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="},
                                {"sec-websocket-version", "13"}}};
    session_ = WebSocketSession::start(
        loop_, std::make_unique<StuckStream>(loop_, seen_),
        {.request = std::move(upgrade),
         .limits = {.request_timeout = std::chrono::seconds(0),
                    .write_timeout = std::chrono::seconds(300)},
         .on_open = [](const std::shared_ptr<WebSocket>& socket) { socket->pause(true); },
         .on_end = [this] { has_ended_ = true; }});
  }
  ~PausedWebSocket() override {
    session_->drop();
    turns(10);
  }
  void turns(int count) {
    for (; count > 0; --count) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }
  bool was_written(const std::string& bytes) const {
    return std::find(seen_.written.begin(), seen_.written.end(), bytes) != seen_.written.end();
  }

  base::EventLoop loop_;
  SeenStream seen_;
  std::shared_ptr<WebSocketSession> session_;
  bool has_ended_ = false;
};

TEST_F(PausedWebSocket, StaysWhileTheKernelOfItsClientAcknowledgesPongs) {
  start();
  turns(1000);

  EXPECT_TRUE(was_written(std::string("\x8A\x06paused", 8)));
  EXPECT_FALSE(was_written(std::string("\x89\x00", 2)));  // a ping, which asks for an answer
  EXPECT_FALSE(has_ended_);
}

TEST_F(PausedWebSocket, SendsThePingThatWaitedForTheEndOfAPong) {
  start();
  turns(100);
  session_->send(Kind::kText, "a message for which a silent client has write_timeout");
  turns(100);
  seen_.accepts = false;
  turns(100);
  ASSERT_TRUE(seen_.end_write);
  session_->pause(false);
  turns(100);
  EXPECT_FALSE(was_written(std::string("\x89\x00", 2)));

  seen_.accepts = true;
  seen_.end_write();
  turns(100);

  EXPECT_TRUE(was_written(std::string("\x89\x00", 2)));
  EXPECT_FALSE(has_ended_);
}

TEST_F(PausedWebSocket, EndsOnceItsClientHasVanished) {
  start();
  seen_.silent_for = std::chrono::seconds(300);
  turns(1000);
  EXPECT_FALSE(has_ended_);

  seen_.silent_for = std::chrono::seconds(301);
  turns(1000);
  EXPECT_TRUE(has_ended_);
  EXPECT_TRUE(seen_.is_closed);
}

TEST(WebSocket, KeepsAClientThatOnlyAnswersPings) {
  Echo echo;
  TestServer server(echo.handler(), {.request_timeout = std::chrono::seconds(3)});
  RawClient client(server.socket());
  client.send(kUpgrade);
  client.read_to("\r\n\r\n");

  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.read_to(std::string_view("\x89\x00", 2)), std::string_view("\x89\x00", 2));
    client.send(frame(0x8A, ""));
  }

  EXPECT_EQ(server.connections(), 1U);
}

TEST(WebSocket, IsClosedWhenTheServerCloses) {
  Echo echo;
  TestServer server(echo.handler());
  const auto client = client_of(server.socket());
  ASSERT_TRUE(client->send(Kind::kText, "hello"));
  EXPECT_EQ(received_by(*client), "hello");

  server.on_loop([&] { server.server().close(); });

  EXPECT_TRUE(echo.is_closed());
  const auto message = client->receive({});
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace muster::http
