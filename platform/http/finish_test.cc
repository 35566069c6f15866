// A server that finishes: pending answers are sent, endless answers are aborted.
#include <gtest/gtest.h>

#include "http/test_server.h"

namespace muster::http {
namespace {

/// Keeps the requests of the handler. The test answers them later.
class Kept {
 public:
  Handler handler() {
    return [this](const Request& request, Respond respond) {
      if (request.path == "/quick") return respond({.body = "at once"});
      if (request.path == "/events") {
        return respond(
            {.content_type = "text/event-stream", .stream = std::make_shared<Silence>()});
      }
      respond_ = std::move(respond);
      came_.set_value();
    };
  }
  void await() { came_.get_future().wait(); }
  void answer(Response response) { std::exchange(respond_, nullptr)(std::move(response)); }

 private:
  class Silence : public BodyStream {
   public:
    void pull(Deliver deliver) override { open_ = std::move(deliver); }

   private:
    Deliver open_;
  };

  std::promise<void> came_;
  Respond respond_;
};

class Finish : public testing::Test {
 protected:
  void finish() {
    server_.on_loop([this] { server_.server().finish([this] { done_.set_value(); }); });
  }
  bool is_done() { return done_.get_future().wait_for(kPatience) == std::future_status::ready; }
  static std::string get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nhost: x\r\n\r\n";
  }

  Kept kept_;
  std::promise<void> done_;  // outlives the server, whose thread keeps it
  TestServer server_{kept_.handler()};
};

TEST_F(Finish, EndsAtOnceWithoutClients) {
  finish();
  EXPECT_TRUE(is_done());
}

TEST_F(Finish, AcceptsNoNewConnections) {
  finish();
  EXPECT_FALSE(connect_to(server_.socket()));
}

TEST_F(Finish, SendsAPendingAnswerAndThenCloses) {
  RawClient client(server_.socket());
  client.send(get("/slow"));
  kept_.await();
  finish();
  const std::string body(3 << 20, 'x');  // more than any socket holds
  server_.on_loop([&] { kept_.answer({.body = body}); });

  const std::string answer = client.read_to_the_end();
  EXPECT_NE(answer.find("connection: close"), std::string::npos) << answer.substr(0, 300);
  EXPECT_TRUE(answer.ends_with(body));
  EXPECT_TRUE(is_done());
}

TEST_F(Finish, ClosesIdleConnections) {
  RawClient client(server_.socket());
  client.send(get("/quick"));
  client.read_to("at once");
  finish();
  EXPECT_EQ(client.read_to_the_end(), "");
  EXPECT_TRUE(is_done());
}

TEST_F(Finish, AbortsEndlessAnswers) {
  RawClient client(server_.socket());
  client.send(get("/events"));
  client.read_to("\r\n\r\n");
  finish();
  client.read_to_the_end();
  EXPECT_TRUE(is_done());
}

}  // namespace
}  // namespace muster::http
