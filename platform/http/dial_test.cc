// Connections: kept for further requests, through a proxy, and with certificates that are not
// verified.
#include "http/dial.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "http/async_client.h"
#include "http/sockets.h"
#include "http/test_async_client.h"
#include "http/test_raw_server.h"
#include "http/test_tls.h"

namespace muster::http {

using base::ErrorCode;

namespace {

constexpr KeepAlive kKept{.most = 4};

using KeptConnection = AsyncClientTest;

TEST_F(KeptConnection, ServesTheNextRequest) {
  TestServer server([](const Request& request, const Respond& respond) { respond(echo(request)); });
  AsyncClient client(loop(), server.socket(), "the server", kKept);
  for (int i = 0; i < 3; ++i) {
    const auto answer = ask(client, {.method = "POST", .target = "/x", .body = "b"});
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->body, "POST /x b");
  }
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(KeptConnection, ServesOneRequestAtATime) {
  TestServer server([](const Request& request, const Respond& respond) { respond(echo(request)); });
  AsyncClient client(loop(), server.socket(), "the server", kKept);
  int answers = 0;
  std::vector<AsyncCall> calls;
  for (int i = 0; i < 6; ++i) {
    calls.push_back(client.send({}, {}, [&](const base::Result<Response>& answer) {
      EXPECT_TRUE(answer);
      ++answers;
      look();
    }));
  }
  ASSERT_TRUE(run_until([&] { return answers == 6; }));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(ask(client, {}));
}

TEST_F(KeptConnection, IsReplacedIfTheServerHasClosedIt) {
  const auto once = [](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  };
  RawServer server(std::vector<RawServer::Script>{once, once});
  AsyncClient client(loop(), server.path(), "the server", kKept);
  ASSERT_TRUE(ask(client, {}));
  // The server closes its end as soon as its script ends; the second script can only begin then.
  const auto second = ask(client, {});
  if (!second) {
    // The close arrived while the second request was being sent.
    EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(ask(client, {}));
  }
}

TEST_F(KeptConnection, IsNotKeptIfTheServerWillCloseItOrSentMore) {
  for (const std::string answer :
       {"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"}) {
    const auto once = [&](RawConnection& connection) {
      connection.read_head();
      connection.send(answer);
      connection.read_to_the_end();
    };
    RawServer server(std::vector<RawServer::Script>{once, once});
    AsyncClient client(loop(), server.path(), "the server", kKept);
    ASSERT_TRUE(ask(client, {}));
    EXPECT_TRUE(ask(client, {})) << answer;
  }
}

TEST_F(KeptConnection, IsClosedAfterAWhile) {
  TestServer server([](const Request& request, const Respond& respond) { respond(echo(request)); });
  AsyncClient client(loop(), server.socket(), "the server",
                     {.most = 1, .longest_wait = std::chrono::milliseconds(20)});
  ASSERT_TRUE(ask(client, {}));
  while (server.connections() > 0) wait_longer_than_soon();
  EXPECT_TRUE(ask(client, {}));
}

TEST_F(KeptConnection, WorksOverTls) {
  TlsTestServer server(
      [](const Request& request, const Respond& respond) { respond(echo(request)); });
  const auto context = client_context(server.trusted("localhost"));
  ASSERT_TRUE(context);
  AsyncClient client(loop(),
                     TlsPlace{.host = "localhost", .port = server.port(), .context = *context},
                     "the server", kKept);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ask(client, {.target = "/x"}));
  EXPECT_EQ(server.connections(), 1U);
}

/// An HTTP proxy on a thread of its own, for one connection.
class Proxy {
 public:
  /// `answer`: the head of its answer. With 200, it carries bytes to the port `target`.
  Proxy(std::string answer, int target) : answer_(std::move(answer)), target_(target) {
    auto listener = listen_on(HostAndPort{.host = "127.0.0.1", .port = 0});
    EXPECT_TRUE(listener);
    listener_ = *std::move(listener);
    port_ = parse_host_and_port(*listening_at(listener_.get()))->port;
    thread_ = std::thread([this] { serve(); });
  }
  ~Proxy() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  HttpProxy place() const {
    return {.host = "127.0.0.1", .port = port_, .authorization = "Basic eA=="};
  }
  /// REQUIRES: the connection has ended.
  std::string head() const { return head_; }

 private:
  void serve() {
    pollfd waits{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    ::poll(&waits, 1, -1);
    const base::UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client) return;
    char letter = 0;
    while (!head_.ends_with("\r\n\r\n") && ::recv(client.get(), &letter, 1, 0) == 1) {
      head_ += letter;
    }
    ::send(client.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    if (answer_.find(" 200 ") == std::string::npos) return;
    const auto server = connect_to(HostAndPort{.host = "127.0.0.1", .port = target_}, kPatience);
    if (server) carry(client.get(), server->get());
  }

  static void carry(int client, int server) {
    std::array<char, 65536> buffer;
    while (true) {
      std::array<pollfd, 2> waits{{{.fd = client, .events = POLLIN, .revents = 0},
                                   {.fd = server, .events = POLLIN, .revents = 0}}};
      ::poll(waits.data(), waits.size(), -1);
      for (size_t i = 0; i < 2; ++i) {
        if (waits[i].revents == 0) continue;
        const ssize_t count = ::recv(waits[i].fd, buffer.data(), buffer.size(), 0);
        if (count <= 0) return;
        ::send(waits[1 - i].fd, buffer.data(), static_cast<size_t>(count), MSG_NOSIGNAL);
      }
    }
  }

  std::string answer_;
  int target_;
  base::UniqueFd listener_;
  int port_ = 0;
  std::string head_;
  std::thread thread_;
};

class ThroughProxy : public AsyncClientTest {
 protected:
  AsyncClient client(const Proxy& proxy) {
    const auto context = client_context(server_.trusted("localhost"));
    EXPECT_TRUE(context);
    return {loop(),
            TlsPlace{.host = "far.example",
                     .port = 6443,
                     .context = *context,
                     .server_name = "localhost",
                     .proxy = proxy.place()},
            "the server"};
  }

  TlsTestServer server_{
      [](const Request& request, const Respond& respond) { respond(echo(request)); }};
};

TEST_F(ThroughProxy, TlsPassesThroughTheTunnel) {
  std::string head;
  {
    Proxy proxy("HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n", server_.port());
    AsyncClient client = this->client(proxy);
    const auto answer = ask(client, {.target = "/x"});
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->body, "GET /x ");
    head = proxy.head();
  }
  EXPECT_TRUE(head.starts_with("CONNECT far.example:6443 HTTP/1.1\r\n")) << head;
  EXPECT_NE(head.find("proxy-authorization: Basic eA==\r\n"), std::string::npos) << head;
}

TEST_F(ThroughProxy, AProxyThatRefusesIsNamed) {
  struct Case {
    const char* answer;
    const char* words;
  };
  const std::array<Case, 4> cases{{
      {"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
       " refuses to connect to the server: status 403"},
      {"HTTP/1.1 407 Authenticate\r\n\r\n", " requires a user and a password"},
      {"SSH-2.0-x\r\n\r\n", " does not answer in HTTP"},
      {"", " closed the connection"},
  }};
  for (const Case& one : cases) {
    Proxy proxy(one.answer, 0);
    AsyncClient client = this->client(proxy);
    const auto answer = ask(client, {});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(answer.error().what, "the server cannot be reached: the proxy at 127.0.0.1:" +
                                       std::to_string(proxy.place().port) + one.words);
  }
}

TEST_F(ThroughProxy, AProxyThatHangsIsGivenUp) {
  auto listener = listen_on(HostAndPort{.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener);
  const int port = parse_host_and_port(*listening_at(listener->get()))->port;
  const auto context = client_context(server_.trusted("localhost"));
  AsyncClient client(loop(),
                     TlsPlace{.host = "x",
                              .port = 1,
                              .context = *context,
                              .proxy = HttpProxy{.host = "127.0.0.1", .port = port}},
                     "the server");
  const auto answer = ask(client, {}, {.connect = kSoon});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
}

TEST_F(ThroughProxy, ACertificateNeedNotBeVerified) {
  const auto context = client_context({.host = "127.0.0.1", .is_unverified = true});
  ASSERT_TRUE(context);
  AsyncClient client(loop(),
                     TlsPlace{.host = "127.0.0.1", .port = server_.port(), .context = *context},
                     "the server");
  EXPECT_TRUE(ask(client, {}));
}

}  // namespace
}  // namespace muster::http
