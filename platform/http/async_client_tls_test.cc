// The client over TLS: which certificates it trusts, and the errors for all others.
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <utility>

#include "base/test_port.h"
#include "base/unique_fd.h"
#include "http/async_client.h"
#include "http/sockets.h"
#include "http/test_async_client.h"
#include "http/test_raw_server.h"
#include "http/test_server.h"
#include "http/test_tls.h"

namespace muster::http {

using base::ErrorCode;
using std::chrono::milliseconds;

namespace {

class AsyncClientTls : public AsyncClientTest {
 protected:
  static AsyncPlace place_of(const TlsTestServer& server, const std::string& host) {
    const auto context = client_context(server.trusted(host));
    EXPECT_TRUE(context) << context.error().to_string();
    return TlsPlace{.host = host, .port = server.port(), .context = *context};
  }

  /// A port of this host whose server does not use TLS.
  class Port {
   public:
    Port() {
      auto listener = listen_on(HostAndPort{.host = "127.0.0.1", .port = 0});
      EXPECT_TRUE(listener) << listener.error().to_string();
      if (!listener) return;
      listener_ = *std::move(listener);
      number_ = parse_host_and_port(*listening_at(listener_.get()))->port;
    }

    AsyncPlace place() const { return place(number_); }
    static AsyncPlace place(int number) {
      const auto context = client_context({.host = "127.0.0.1",
                                           .port = number,
                                           .fingerprint = {},
                                           .authorities = identity_of({"x"}).certificate});
      EXPECT_TRUE(context) << context.error().to_string();
      return TlsPlace{.host = "127.0.0.1", .port = number, .context = *context};
    }
    base::UniqueFd accept() const {
      pollfd waits{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      ::poll(&waits, 1, -1);
      return base::UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }

   private:
    base::UniqueFd listener_;
    int number_ = 0;
  };
};

TEST_F(AsyncClientTls, AServerIsIdentifiedByItsCertificateAndFoundByItsName) {
  const TlsTestServer server(
      [](const Request& request, const Respond& respond) { respond(echo(request)); });
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    AsyncClient client(loop(), place_of(server, host), "the server");

    const auto answer =
        ask(client, {.method = "PUT", .target = "/x", .body = std::string(1 << 20, 'b')});

    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->body.size(), (1U << 20U) + 7);
  }
}

TEST_F(AsyncClientTls, ACertificateOfAnotherAuthorityOrNameIsNotTrusted) {
  const Handler handler = [](const Request&, const Respond& respond) { respond({}); };
  const TlsTestServer server(handler);
  const TlsTestServer other(handler, {}, identity_of({"other.example"}));

  AsyncPlace wrong_authority = place_of(server, "localhost");
  std::get<TlsPlace>(wrong_authority).context = *client_context(other.trusted("localhost"));
  AsyncClient stranger(loop(), wrong_authority, "the server");
  const auto first = ask(stranger, {});
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kRefused);
  EXPECT_TRUE(first.error().what.starts_with("cannot verify the certificate of the server: "))
      << first.error().what;

  AsyncClient misnamed(loop(), place_of(other, "localhost"), "the server");
  const auto second = ask(misnamed, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kRefused);
}

TEST_F(AsyncClientTls, AServerWithoutTlsIsReported) {
  const Port port;
  std::thread plain([&] {
    RawConnection connection(port.accept());
    connection.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop(), port.place(), "the server");

  const auto answer = ask(client, {});
  plain.join();

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().what.find("wrong version number"), std::string::npos)
      << answer.error().what;
}

TEST_F(AsyncClientTls, AHandshakeThatHangsIsGivenUp) {
  const Port port;
  AsyncClient client(loop(), port.place(), "the server");

  const auto answer = ask(client, {}, {.connect = kSoon});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "the server does not accept a connection within 50 ms");
}

TEST_F(AsyncClientTls, TheErrorNamesAnAddressWithoutAListener) {
  const base::HeldPort port;
  AsyncClient client(loop(), Port::place(port.number()), "the server");

  const auto answer = ask(client, {});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(answer.error().what, "the server cannot be reached: no server answers at 127.0.0.1:" +
                                     std::to_string(port.number()) + ": Connection refused");
}

TEST_F(AsyncClientTls, AnUnknownNameIsReportedToHaveNoAddress) {
  AsyncClient client(loop(),
                     TlsPlace{.host = "no-such-host.invalid", .port = 1, .context = nullptr},
                     "the server");

  const auto answer = ask(client, {}, {.connect = milliseconds(0)});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().what.find("host 'no-such-host.invalid' has no address"),
            std::string::npos)
      << answer.error().what;
}

}  // namespace
}  // namespace muster::http
