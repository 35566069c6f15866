#include "notify/courier.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "http/sockets.h"
#include "http/test_server.h"

namespace muster::notify {
namespace {

using base::ErrorCode;
using base::Result;

class OnItsWay : public testing::Test {
 protected:
  OnItsWay() { std::signal(SIGPIPE, SIG_IGN); }

  Outcome send(const std::string& url) {
    Outcome outcome;
    courier_.send({.receiver = *receiver_of(url), .headers = {}, .body = "hello"},
                  [&](Outcome came) {
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

/// Listens, and is not to be connected to.
struct Trap {
  base::UniqueFd socket = *http::listen_on({.host = "127.0.0.1", .port = 0});
  int port() const { return http::parse_host_and_port(*http::listening_at(socket.get()))->port; }
  bool was_connected_to() const {
    base::UniqueFd connection(::accept(socket.get(), nullptr, nullptr));
    return static_cast<bool>(connection);
  }
};

TEST_F(OnItsWay, ConnectsToNoAddressThatIsForbidden) {
  const Trap trap;
  for (const std::string host : {"127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1"}) {
    const std::string url = "https://" + host + ":" + std::to_string(trap.port());
    const Outcome outcome = send(url);
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

  const Outcome outcome = send("http://127.0.0.1:" + std::to_string(trap.port()));
  server.join();

  EXPECT_FALSE(outcome.fault) << outcome.fault->what;
  EXPECT_EQ(outcome.status, 204);
}

TEST_F(OnItsWay, SaysThatANameCannotBeLookedUp) {
  const Outcome outcome = send("https://no-such-host.invalid");

  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->code, ErrorCode::kUnavailable);
  EXPECT_FALSE(outcome.is_forbidden);
}

TEST_F(OnItsWay, TakesMoreErrandsThanItHasHands) {
  int done = 0;
  constexpr int kMany = 3 * static_cast<int>(Courier::kHands);
  for (int i = 0; i < kMany; ++i) {
    courier_.send({.receiver = *receiver_of("https://127.0.0.1"), .headers = {}, .body = {}},
                  [&](const Outcome& outcome) {
                    EXPECT_TRUE(outcome.is_forbidden);
                    if (++done == kMany) loop_.stop();
                  });
  }
  loop_.run();
  EXPECT_EQ(done, kMany);
}

TEST(CourierThatGoes, LeavesWhatIsUnderWayAtOnce) {
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
                [&](const Outcome&) { called = true; });
  // Once it waits for the answer.
  pollfd waits{.fd = silent.socket.get(), .events = POLLIN, .revents = 0};
  ::poll(&waits, 1, -1);

  courier.reset();

  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace muster::notify
