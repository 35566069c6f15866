#include "server/program_bridge.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/websocket.h"

namespace muster::server {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using engine::Exec;
using http::WebSocket;

/// The calls to a program, and the events that a test triggers.
struct Program {
  engine::ExecHandlers handlers;
  Exec::Begun begun;
  std::string input;
  size_t waiting = 0;
  bool paused = false;
  bool dropped = false;
};

class FakeProgram : public Exec {
 public:
  explicit FakeProgram(Program& program) : program_(program) {}
  ~FakeProgram() override { program_.dropped = true; }
  void when_begun(Begun on_begun) override { program_.begun = std::move(on_begun); }
  void write(std::string_view bytes) override { program_.input += bytes; }
  size_t waiting() const override { return program_.waiting; }
  void close_input() override { program_.input += "<end>"; }
  void resize(int, int) override {}
  void pause(bool paused) override { program_.paused = paused; }

 private:
  Program& program_;
};

class FakeSocket : public WebSocket {
 public:
  void set_handlers(Handlers its_handlers) override { handlers = std::move(its_handlers); }
  void send(Kind, std::string message) override { sent.push_back(std::move(message)); }
  size_t waiting() const override { return unsent; }
  void close(int its_code, std::string_view) override { code = its_code; }
  void pause(bool is_paused) override { paused = is_paused; }

  /// The client disconnects.
  void vanish() {
    const Handlers last = std::exchange(handlers, {});
    if (last.on_close) last.on_close();
  }

  Handlers handlers;
  std::vector<std::string> sent;
  size_t unsent = 0;
  int code = 0;
  bool paused = false;
};

class Bridge : public ::testing::Test {
 protected:
  ~Bridge() override { socket_->vanish(); }

  void open() {
    bridges_->open(
        nullptr,
        [this](engine::ExecHandlers handlers) -> Result<std::unique_ptr<Exec>> {
          program_.handlers = std::move(handlers);
          return std::make_unique<FakeProgram>(program_);
        },
        [this](http::Response response) { answer_ = std::move(response); });
  }
  void begin(Result<void> how = {}) {
    const auto begun = std::exchange(program_.begun, nullptr);
    begun(std::move(how));
  }
  void open_socket() {
    ASSERT_TRUE(answer_ && answer_->websocket);
    std::exchange(answer_, std::nullopt)->websocket(socket_);
  }

  Program program_;
  std::shared_ptr<FakeSocket> socket_ = std::make_shared<FakeSocket>();
  std::optional<http::Response> answer_;
  std::optional<ProgramBridges> bridges_{std::in_place};
};

TEST_F(Bridge, AnswersWhenTheProgramHasStarted) {
  open();
  EXPECT_FALSE(answer_);
  EXPECT_TRUE(program_.paused);

  begin();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->status, 101);
  EXPECT_TRUE(program_.paused) << "nobody could hear it yet";

  open_socket();
  EXPECT_FALSE(program_.paused);
}

TEST_F(Bridge, AFailedStartIsAnOrdinaryError) {
  open();

  begin(Error{.code = ErrorCode::kNotFound, .what = "the task has no program 'x'"});

  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->status, 404);
  EXPECT_NE(answer_->body.find("the task has no program 'x'"), std::string::npos);
  EXPECT_TRUE(program_.dropped);
}

TEST_F(Bridge, AnEndBeforeTheWebSocketIsOpenIsSentOverIt) {
  open();
  begin();
  program_.handlers.on_exit({.code = 7});

  open_socket();

  ASSERT_EQ(socket_->sent.size(), 1U);
  EXPECT_NE(socket_->sent[0].find("\"code\":7"), std::string::npos) << socket_->sent[0];
  EXPECT_EQ(socket_->code, 1000);
}

TEST_F(Bridge, EachSideSlowsTheOtherDown) {
  open();
  begin();
  open_socket();

  socket_->unsent = WebSocket::kHigh + 1;
  program_.handlers.on_output("out", false);
  EXPECT_TRUE(program_.paused);
  socket_->handlers.on_drain();
  EXPECT_FALSE(program_.paused);

  program_.waiting = Exec::kHigh + 1;
  socket_->handlers.on_message(WebSocket::Kind::kBinary, "in");
  EXPECT_TRUE(socket_->paused);
  program_.handlers.on_drain();
  EXPECT_FALSE(socket_->paused);
}

TEST_F(Bridge, TheProgramEndsWithTheWebSocket) {
  open();
  begin();
  open_socket();
  EXPECT_FALSE(program_.dropped);

  socket_->vanish();

  EXPECT_TRUE(program_.dropped);
}

TEST_F(Bridge, AnAnswerThatCannotBeSentEndsTheProgram) {
  open();
  begin();

  answer_.reset();

  EXPECT_TRUE(program_.dropped);
}

TEST_F(Bridge, ProgramsThatNeverStartAreDroppedWithTheServer) {
  open();

  bridges_.reset();

  EXPECT_TRUE(program_.dropped);
  EXPECT_FALSE(answer_);
}

}  // namespace
}  // namespace muster::server
