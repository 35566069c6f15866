// The server and the client with each other, over a real socket; and the server with bytes that no
// valid client sends.
#include "http/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "http/client.h"
#include "http/test_server.h"

namespace muster::http {
namespace {

using base::ErrorCode;

/// Answers with a description of the request.
void echo_request(const Request& request, const Respond& respond) {
  std::string body = request.method + " " + request.path + "\n";
  for (const auto& [name, value] : request.query)
    body.append(name).append("=").append(value) += '\n';
  respond({.status = 201,
           .content_type = "text/plain",
           .body = body + request.body,
           .headers = {{"x-seen", request.headers.contains("x-sent") ? "yes" : "no"}}});
}

TEST(Server, AnswersARequest) {
  TestServer server(echo_request);
  BlockingClient client(server.socket());

  const auto response = client.send({.method = "POST",
                                     .path = "/v1/a b",
                                     .query = {{"since", "1+2 3&4"}},
                                     .headers = {{"x-sent", "1"}},
                                     .body = std::string("\0binary\xFF", 8)});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->content_type, "text/plain");
  EXPECT_EQ(response->headers.at("x-seen"), "yes");
  EXPECT_EQ(response->body, std::string("POST /v1/a b\nsince=1+2 3&4\n\0binary\xFF", 35));
}

TEST(Server, PassesThePeerToTheHandler) {
  TestServer server([](const Request& request, const Respond& respond) {
    respond({.body = std::to_string(*request.peer.user)});
  });

  EXPECT_EQ(BlockingClient(server.socket()).send({})->body, std::to_string(::geteuid()));
}

TEST(Server, ReportsToTheHandlerWhetherTheClientHasLeft) {
  std::promise<Request> arrived;
  std::optional<Respond> unanswered;
  TestServer server([&](Request request, Respond respond) {
    unanswered = std::move(respond);
    arrived.set_value(std::move(request));
  });
  const auto has_left = [&](const Request& request) {
    bool answer = false;
    server.on_loop([&] { answer = request.peer.has_left(); });
    return answer;
  };
  RawClient client(server.socket());
  client.send("GET / HTTP/1.1\r\nhost: h\r\n\r\n");
  const Request request = arrived.get_future().get();
  EXPECT_FALSE(has_left(request));

  client.leave();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!has_left(request) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(has_left(request));
  server.on_loop([&] { unanswered.reset(); });
  EXPECT_TRUE(has_left(request)) << "the connection exists no longer";
}

TEST(Server, KeepsOneConnectionForManyRequests) {
  TestServer server(echo_request);
  BlockingClient client(server.socket());

  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.send({.path = "/" + std::to_string(i)}));

  EXPECT_EQ(server.connections(), 1U);
}

TEST(Server, IsConnectedToAgainAfterItHasHungUp) {
  TestServer server([](const Request&, const Respond& respond) { respond({.body = "hello"}); });
  BlockingClient client(server.socket());
  ASSERT_TRUE(client.send({}));

  server.on_loop([&] {
    server.server().close();
    ASSERT_TRUE(server.server().listen(server.socket()));
  });

  const auto again = client.send({});
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->body, "hello");
}

TEST(Server, CarriesLargeBodiesBothWays) {
  TestServer server([](const Request& request,
                       const Respond& respond) { respond({.body = request.body + request.body}); },
                    {.body_bytes = 32 << 20});
  BlockingClient client(server.socket());
  std::string body(32 << 20, 'x');
  body.back() = 'y';

  const auto response = client.send({.method = "POST", .body = body});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->body.size(), 2 * body.size());
  EXPECT_EQ(response->body.substr(body.size()), body);
}

TEST(Server, RefusesABodyThatIsTooLargeWhileTheClientIsStillSending) {
  TestServer server(echo_request, {.body_bytes = 1000});
  BlockingClient client(server.socket());

  const auto response = client.send({.method = "POST", .body = std::string(8 << 20, 'x')});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(response->body, R"({"type":"about:blank","title":"Content Too Large","status":413,)"
                            R"("detail":"the body is larger than 1000 bytes"})");
}

// A browser that is still sending a body shows no answer if the connection is reset.
TEST(Server, EndsAConnectionOnTheLoopbackWithoutAResetWhileTheClientIsStillSending) {
  TestServer server(echo_request, {.body_bytes = 1000});
  int port = 0;
  server.on_loop([&] { port = *server.server().listen_on_loopback(0); });
  const auto client = connect_to(HostAndPort{.host = "127.0.0.1", .port = port}, kPatience);
  ASSERT_TRUE(client) << client.error().to_string();
  ASSERT_EQ(::fcntl(client->get(), F_SETFL, 0), 0) << "it is to block";
  const std::string body(256 << 10, 'x');
  const std::string request =
      "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" +
      body;

  const ssize_t sent = ::send(client->get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  std::string buffer(1 << 16, '\0');
  ssize_t count = 0;
  while ((count = ::recv(client->get(), buffer.data(), buffer.size(), 0)) > 0) {
    answer.append(buffer, 0, static_cast<size_t>(count));
  }

  EXPECT_EQ(sent, static_cast<ssize_t>(request.size()));
  EXPECT_EQ(first_line(answer), "HTTP/1.1 413 Content Too Large");
  EXPECT_EQ(count, 0) << "the connection was reset";
}

TEST(Server, AnswersHeadWithTheLengthAndNoBody) {
  TestServer server([](const Request&, const Respond& respond) { respond({.body = "hello"}); });
  BlockingClient client(server.socket());

  const auto response = client.send({.method = "HEAD"});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->headers.at("content-length"), "5");
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(client.send({})->body, "hello");  // the connection can still be used
}

TEST(Server, SendsNoBodyWithAStatusThatHasNone) {
  TestServer server([](const Request& request, const Respond& respond) {
    respond({.status = request.path == "/none" ? 204 : 200, .body = "hello"});
  });
  BlockingClient client(server.socket());

  const auto response = client.send({.method = "DELETE", .path = "/none"});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 204);
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(client.send({})->body, "hello");  // the connection can still be used
}

TEST(Server, AnswersLaterIfTheHandlerDoes) {
  std::vector<base::EventLoop::Interest> timers;
  base::EventLoop* loop = nullptr;
  TestServer server([&](const Request&, const Respond& respond) {
    timers.push_back(loop->after(std::chrono::milliseconds(1), [respond] {
      respond({.body = "later"});
      respond({.body = "the second answer to one request"});
    }));
  });
  loop = &server.loop();
  BlockingClient client(server.socket());

  EXPECT_EQ(client.send({})->body, "later");
  EXPECT_EQ(client.send({})->body, "later");

  server.on_loop([&] { timers.clear(); });
}

TEST(Server, SurvivesAHandlerThatThrows) {
  TestServer server([](const Request& request, const Respond& respond) {
    if (request.path == "/throw") throw std::runtime_error("a defect");
    if (request.path == "/odd") throw 42;
    respond({});
  });
  BlockingClient client(server.socket());

  EXPECT_EQ(client.send({.path = "/throw"})->status, 500);
  EXPECT_EQ(client.send({.path = "/odd"})->status, 500);
  EXPECT_EQ(client.send({.path = "/"})->status, 200);
}

TEST(Server, AnswersForAHandlerThatLosesTheRequest) {
  TestServer server([](const Request&, const Respond&) {});

  EXPECT_EQ(BlockingClient(server.socket()).send({})->status, 500);
}

TEST(Server, AnswersPipelinedRequestsInTheirOrder) {
  TestServer server(echo_request);
  RawClient client(server.socket());

  client.send(
      "GET /1 HTTP/1.1\r\nhost: h\r\n\r\nGET /2 HTTP/1.1\r\nhost: h\r\n\r\nGET /3 "
      "HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");

  const std::string answers = client.read_to_the_end();
  EXPECT_LT(answers.find("/1\n"), answers.find("/2\n"));
  EXPECT_LT(answers.find("/2\n"), answers.find("/3\n"));
  EXPECT_NE(answers.find("/3\n"), std::string::npos);
}

TEST(Server, AnswersAClientThatHasClosedItsSendingHalf) {
  TestServer server(echo_request);
  RawClient client(server.socket());

  client.send("GET /half HTTP/1.1\r\nhost: h\r\n\r\n");
  client.stop_sending();

  EXPECT_NE(client.read_to_the_end().find("GET /half"), std::string::npos);
}

TEST(Server, Sends100ContinueToAClientThatWaitsForIt) {
  TestServer server(echo_request);
  RawClient client(server.socket());

  client.send("POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n");
  EXPECT_EQ(client.read_to("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");

  EXPECT_EQ(first_line(client.read_to("body")), "HTTP/1.1 201 Created");
}

TEST(Server, RefusesMalformedRequestsAndHangsUp) {
  TestServer server(echo_request);
  RawClient client(server.socket());

  client.send("this is no HTTP\r\n\r\n");

  const std::string answer = client.read_to_the_end();
  EXPECT_EQ(first_line(answer), "HTTP/1.1 400 Bad Request");
  EXPECT_NE(answer.find("connection: close"), std::string::npos);
}

TEST(Server, HangsUpOnAClientThatSendsTooSlowlyOrNothing) {
  TestServer server(echo_request, {.request_timeout = std::chrono::seconds(1)});
  RawClient slow(server.socket());
  RawClient silent(server.socket());

  slow.send("GET / HTT");

  EXPECT_EQ(first_line(slow.read_to_the_end()), "HTTP/1.1 408 Request Timeout");
  EXPECT_EQ(silent.read_to_the_end(), "");
}

TEST(Server, RefusesMoreConnectionsThanItsLimit) {
  TestServer server(echo_request, {.connections = 1});
  RawClient first(server.socket());
  first.send("GET / HTTP/1.1\r\nhost: h\r\n\r\n");
  first.read_to("GET /\n");

  EXPECT_EQ(BlockingClient(server.socket()).send({})->status, 503);

  first.leave();
  while (server.connections() > 0) std::this_thread::yield();
  EXPECT_EQ(BlockingClient(server.socket()).send({})->status, 201);
}

/// Prevents this process from opening descriptors while this object exists.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 3;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit before_{};
};

TEST(Server, TriesAgainWhenThereAreDescriptorsAgain) {
  TestServer server(echo_request);
  std::optional<RawClient> client;
  std::optional<NoDescriptorsLeft> shortage;
  // On the server's own thread, so that the server cannot accept a connection too early.
  server.on_loop([&] {
    client.emplace(server.socket());
    shortage.emplace();
  });
  client->send("GET /patient HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
  for (int i = 0; i < 100; ++i) server.on_loop([] {});
  EXPECT_EQ(server.connections(), 0U);

  shortage.reset();

  EXPECT_NE(client->read_to_the_end().find("GET /patient"), std::string::npos);
}

TEST(Server, DropsItsConnectionsAndItsFileWhenItCloses) {
  TestServer server(echo_request);
  RawClient client(server.socket());
  client.send("GET / HTTP/1.1\r\nhost: h\r\n\r\n");
  client.read_to("GET /\n");

  server.on_loop([&] { server.server().close(); });

  EXPECT_EQ(client.read_to_the_end(), "");
  EXPECT_EQ(server.connections(), 0U);
  EXPECT_FALSE(std::filesystem::exists(server.socket()));
}

TEST(Server, MayBeClosedByItsOwnHandler) {
  Server* itself = nullptr;
  TestServer server([&](const Request&, const Respond& respond) {
    itself->close();
    respond({});
  });
  itself = &server.server();

  const auto response = BlockingClient(server.socket()).send({});

  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
}

TEST(BlockingClient, ReportsThatNoServerAnswers) {
  const base::TestFolder folder;

  const auto response = BlockingClient(folder / "none").send({});

  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(response.error().what,
            "no server answers on socket '" + (folder / "none").string() + "'");
}

TEST(Server, AsksTheGateBeforeItReadsABody) {
  base::TestFolder folder;
  base::EventLoop loop;
  std::atomic<int> handled = 0;
  Server server(
      loop, [&](const Request&, const Respond& respond) { ++handled, respond({.body = "in"}); }, {},
      [](const Request& head) -> std::optional<Response> {
        if (head.headers.contains("authorization")) return std::nullopt;
        return Response{.status = 401, .body = "who?"};
      });
  ASSERT_TRUE(server.listen(folder / "socket"));
  std::jthread thread([&] { loop.run(); });

  RawClient stranger(folder / "socket");
  stranger.send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\n");
  const std::string refused = stranger.read_to_the_end();
  RawClient guest(folder / "socket");
  guest.send("POST / HTTP/1.1\r\nhost: h\r\nauthorization: x\r\ncontent-length: 4\r\n\r\nb");
  guest.send("ody");
  guest.send("GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
  const std::string answered = guest.read_to_the_end();
  loop.post([&] { server.close(), loop.stop(); });
  thread.join();

  EXPECT_EQ(first_line(refused), "HTTP/1.1 401 Unauthorized");
  EXPECT_TRUE(refused.ends_with("who?")) << refused;
  EXPECT_EQ(first_line(answered), "HTTP/1.1 200 OK");
  EXPECT_EQ(handled, 2);
}

}  // namespace
}  // namespace muster::http
