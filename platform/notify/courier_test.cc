#include "notify/courier.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "http/sockets.h"
#include "http/test_server.h"
#include "notify/test_values.h"

namespace muster::notify {
namespace {

using base::ErrorCode;
using base::Result;

class OnItsWay : public testing::Test {
 protected:
  OnItsWay() { std::signal(SIGPIPE, SIG_IGN); }

  DeliveryOutcome send(const std::string& url) {
    DeliveryOutcome outcome;
    courier_.send({.receiver = *receiver_of(url), .headers = {}, .body = "hello"},
                  [&](DeliveryOutcome came) {
                    outcome = std::move(came);
                    loop_.stop();
                  });
    loop_.run();
    return outcome;
  }
  Result<void> check(const std::string& url) {
    Result<void> checked;
    courier_.check(*receiver_of(url), [&](Result<void> result) {
      checked = std::move(result);
      loop_.stop();
    });
    loop_.run();
    return checked;
  }

  base::EventLoop loop_;
  Courier courier_{loop_};
};

/// A listening socket to which no connection may be made.
struct Trap {
  base::UniqueFd socket = *http::listen_on({.host = "127.0.0.1", .port = 0});
  int port() const { return http::parse_host_and_port(*http::listening_at(socket.get()))->port; }
  bool was_connected_to() const {
    base::UniqueFd connection(::accept(socket.get(), nullptr, nullptr));
    return static_cast<bool>(connection);
  }
};

TEST_F(OnItsWay, ConnectsToNoForbiddenAddress) {
  const Trap trap;
  for (const std::string host : {"127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1"}) {
    const std::string url = "https://" + host + ":" + std::to_string(trap.port());
    const DeliveryOutcome outcome = send(url);
    ASSERT_TRUE(outcome.fault) << url;
    EXPECT_TRUE(outcome.is_forbidden) << url;
    EXPECT_EQ(outcome.fault->code, ErrorCode::kRefused);
    EXPECT_EQ(check(url).error().code, ErrorCode::kRefused) << url;
  }
  EXPECT_FALSE(trap.was_connected_to());
}

TEST_F(OnItsWay, ConnectsWhereTheAdminAllowsIt) {
  const Trap trap;
  courier_.set_rules(
      *AddressRules::of({"127.0.0.1:" + std::to_string(trap.port())}, /*allow_http=*/true));
  std::thread server([&] {
    const base::UniqueFd connection = [&] {
      pollfd waits{.fd = trap.socket.get(), .events = POLLIN, .revents = 0};
      ::poll(&waits, 1, -1);
      return base::UniqueFd(::accept(trap.socket.get(), nullptr, nullptr));
    }();
    const std::string answer = "HTTP/1.1 204 No Content\r\n\r\n";
    ::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  });

  const DeliveryOutcome outcome = send("http://127.0.0.1:" + std::to_string(trap.port()));
  server.join();

  EXPECT_FALSE(outcome.fault) << outcome.fault->what;
  EXPECT_EQ(outcome.status, 204);
}

TEST_F(OnItsWay, ReportsANameThatCannotBeResolved) {
  const DeliveryOutcome outcome = send("https://no-such-host.invalid");

  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->code, ErrorCode::kUnavailable);
  EXPECT_FALSE(outcome.is_forbidden);
}

TEST_F(OnItsWay, TakesMoreErrandsThanItHasHands) {
  int done = 0;
  constexpr int kMany = 3 * static_cast<int>(Courier::kHands);
  for (int i = 0; i < kMany; ++i) {
    courier_.send({.receiver = *receiver_of("https://127.0.0.1"), .headers = {}, .body = {}},
                  [&](const DeliveryOutcome& outcome) {
                    EXPECT_TRUE(outcome.is_forbidden);
                    if (++done == kMany) loop_.stop();
                  });
  }
  loop_.run();
  EXPECT_EQ(done, kMany);
}

TEST(CourierThatGoes, AbandonsPendingDeliveriesAtOnce) {
  const Trap silent;
  base::EventLoop loop;
  http::OutboundLimits patient;
  patient.whole = std::chrono::hours(1);
  auto courier = std::make_unique<Courier>(loop, patient);
  courier->set_rules(*AddressRules::of({"127.0.0.1:*"}, /*allow_http=*/true));
  bool called = false;
  courier->send({.receiver = *receiver_of("http://127.0.0.1:" + std::to_string(silent.port())),
                 .headers = {},
                 .body = {}},
                [&](const DeliveryOutcome&) { called = true; });
  // At this point the courier waits for the answer.
  pollfd waits{.fd = silent.socket.get(), .events = POLLIN, .revents = 0};
  ::poll(&waits, 1, -1);

  courier.reset();

  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(called);
}

}  // namespace
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr base::Time kNow{seconds(1'700'000'000)};

/// The time of the next attempt in seconds after kNow; -1: never.
int64_t pause(int attempts, double dice, std::chrono::nanoseconds age = {}) {
  const auto next = next_attempt({}, kNow - age, kNow, attempts, dice);
  return next ? std::chrono::duration_cast<seconds>(*next - kNow).count() : -1;
}

TEST(RetrySchedule, DoublesThePauseUpToAnHour) {
  const int64_t expected[] = {10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600};
  int attempts = 0;
  for (const int64_t each : expected) EXPECT_EQ(pause(++attempts, 0), each) << attempts;
  EXPECT_EQ(pause(1'000'000, 0), 3600);
}

TEST(RetrySchedule, ShortensThePauseByUpToAHalf) {
  EXPECT_EQ(pause(1, 1), 5);
  EXPECT_EQ(pause(3, 0.5), 30);
}

TEST(RetrySchedule, EndsAfterADayWithALastAttempt) {
  EXPECT_EQ(pause(20, 0, hours(22)), 3600);
  EXPECT_EQ(pause(20, 0, hours(24) - seconds(60)), 60);
  EXPECT_EQ(pause(20, 0, hours(24)), -1);
  EXPECT_EQ(pause(1, 0, hours(25)), -1);
}

TEST(RetrySchedule, RetriesOnlyAnswersThatMayBeTemporary) {
  const struct {
    int status;
    DeliveryVerdict verdict;
  } cases[] = {{200, DeliveryVerdict::kArrived}, {202, DeliveryVerdict::kArrived},
               {204, DeliveryVerdict::kArrived}, {299, DeliveryVerdict::kArrived},
               {100, DeliveryVerdict::kAgain},   {301, DeliveryVerdict::kAgain},
               {302, DeliveryVerdict::kAgain},   {304, DeliveryVerdict::kAgain},
               {400, DeliveryVerdict::kNever},   {401, DeliveryVerdict::kNever},
               {403, DeliveryVerdict::kNever},   {404, DeliveryVerdict::kNever},
               {408, DeliveryVerdict::kAgain},   {409, DeliveryVerdict::kNever},
               {410, DeliveryVerdict::kGone},    {413, DeliveryVerdict::kNever},
               {425, DeliveryVerdict::kAgain},   {429, DeliveryVerdict::kAgain},
               {500, DeliveryVerdict::kAgain},   {502, DeliveryVerdict::kAgain},
               {503, DeliveryVerdict::kAgain},   {599, DeliveryVerdict::kAgain}};
  for (const auto& [status, verdict] : cases) EXPECT_EQ(verdict_on(status), verdict) << status;
}

}  // namespace
namespace {

// The codes were computed by another program:
//   python3 -c 'import hmac; print(hmac.new(KEY, b"TIME.BODY", "sha256").hexdigest())'
TEST(Signature, IsTheHmacOfTimeAndBody) {
  EXPECT_EQ(signature_of("key", at_second(0), ""),
            "t=0,v1=85841b4efc3cd7776c3c8f9b7cca9e281c550e5d19889d78e9e669c6337f000d");
  EXPECT_EQ(signature_of("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                         at_second(1'700'000'000), R"({"id":"d1"})"),
            "t=1700000000,v1=d07a8f10bcbfecdd2b324b31fa03b1c3c2802941c5e5149e0ba8ac3b0b9fb2b5");
  EXPECT_EQ(signature_of("k\xff", at_second(1'700'000'000), "line\nline \xc3\xa9"),
            "t=1700000000,v1=70aae11e6c190062d61ab87f0732b3e70094cdd5dd49446a7c12c7a74eff7cb9");
}

TEST(Signature, HasItsTimeInWholeSeconds) {
  EXPECT_EQ(signature_of("key", at_second(7) + std::chrono::milliseconds(999), "b"),
            signature_of("key", at_second(7), "b"));
}

}  // namespace
}  // namespace muster::notify
