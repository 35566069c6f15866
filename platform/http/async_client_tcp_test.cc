// The client over plain TCP, and the moment at which it reports that the server may have received a
// request.
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/test_port.h"
#include "base/unique_fd.h"
#include "http/async_client.h"
#include "http/sockets.h"
#include "http/test_async_client.h"
#include "http/test_raw_server.h"

namespace muster::http {

using base::ErrorCode;
using base::Result;

namespace {

/// A port of this host that takes connections.
class Port {
 public:
  Port() {
    auto listener = listen_on(HostAndPort{.host = "127.0.0.1", .port = number()});
    EXPECT_TRUE(listener) << listener.error().to_string();
    if (listener) listener_ = *std::move(listener);
  }

  TcpPlace place(const std::string& host = "127.0.0.1") const {
    return {.host = host, .port = number()};
  }
  RawConnection accept() const {
    pollfd waits{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    ::poll(&waits, 1, -1);
    return RawConnection(
        base::UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }
  void close() { listener_.reset(); }
  int number() const { return port_.number(); }

 private:
  base::HeldPort port_;
  base::UniqueFd listener_;
};

using AsyncClientTcp = AsyncClientTest;

TEST_F(AsyncClientTcp, AServerIsFoundByItsAddressAndItsName) {
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const Port port;
    std::string head;
    std::thread server([&] {
      RawConnection connection = port.accept();
      head = connection.read_head();
      connection.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    AsyncClient client(loop(), port.place(host), "the server");

    const auto answer = ask(client, {.target = "/x"});
    server.join();

    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->body, "ok");
    EXPECT_TRUE(head.starts_with("GET /x HTTP/1.1\r\n")) << head;
    EXPECT_NE(head.find("ost: " + host + ":" + std::to_string(port.number()) + "\r\n"),
              std::string::npos)
        << head;
  }
}

TEST_F(AsyncClientTcp, ARequestMayHaveArrivedOnceItsConnectionIsOpen) {
  Port port;
  bool was_sending = false;
  const auto request = [&] {
    return AsyncRequest{.method = "POST", .body = "x", .on_sending = [&] { was_sending = true; }};
  };
  std::thread server([&] { port.accept().read_to("x"); });  // and closes the connection
  AsyncClient client(loop(), port.place(), "the server");
  const auto lost = ask(client, request());
  server.join();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(was_sending);

  port.close();
  was_sending = false;
  const auto refused = ask(client, request());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(was_sending);
}

TEST_F(AsyncClientTcp, TheCallbackForASentRequestMayDropTheCall) {
  const Port port;
  AsyncClient client(loop(), port.place(), "the server");
  auto call = std::make_unique<AsyncCall>();
  AsyncRequest request{.on_sending = [&] {
    call.reset();
    look();
  }};
  *call = client.send(std::move(request), {}, [](const Result<Response>&) { ADD_FAILURE(); });

  ASSERT_TRUE(run_until([&] { return call == nullptr; }));

  EXPECT_EQ(port.accept().read_to_the_end(), "") << "it was sent all the same";
}

}  // namespace
}  // namespace muster::http
