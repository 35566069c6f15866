// Ports that a task's program is to bind, and that another process has taken before it starts.
// Where tasks have a network of their own, no other process can be first.
#include <arpa/inet.h>
#include <sys/socket.h>

#include "engine/conformance.h"

namespace muster::engine {
namespace {

class TakenPorts : public Conformance {
 protected:
  /// A server of another process, at an address.
  base::UniqueFd listen_at(const std::string& address, int port = 0) {
    const bool is_six = address.find(':') != std::string::npos;
    base::UniqueFd socket(::socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage where{};
    auto* const four = reinterpret_cast<sockaddr_in*>(&where);
    auto* const six = reinterpret_cast<sockaddr_in6*>(&where);
    where.ss_family = is_six ? AF_INET6 : AF_INET;
    (is_six ? six->sin6_port : four->sin_port) = htons(static_cast<uint16_t>(port));
    void* const figures = is_six ? static_cast<void*>(&six->sin6_addr) : &four->sin_addr;
    EXPECT_EQ(::inet_pton(where.ss_family, address.c_str(), figures), 1);
    // gRPC's servers set this option, too.
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
    const socklen_t size = is_six ? sizeof *six : sizeof *four;
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&where), size), 0);
    EXPECT_EQ(::listen(socket.get(), 1), 0);
    return socket;
  }

  static int port_of(const base::UniqueFd& socket) {
    sockaddr_storage where{};
    socklen_t size = sizeof where;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&where), &size);
    return ntohs(where.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(where).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(where).sin_port);
  }

  TaskPlan serving(int port, const std::string& address) {
    TaskPlan plan = script("echo started");
    plan.serves = {{.port = port, .address = address}};
    return plan;
  }
};

TEST_P(TakenPorts, AreAConflictThatNamesThemAndTheTask) {
  struct Case {
    std::string theirs;
    std::string ours;
    std::string shown;
  };
  const std::string own = "127.20.1.2";
  for (const Case& each : std::vector<Case>{{own, own, " of 127.20.1.2"},
                                            {"0.0.0.0", own, " of 127.20.1.2"},
                                            {own, "", ""},
                                            {"0.0.0.0", "", ""},
                                            {"127.0.0.1", "worker-0", ""}}) {
    const base::UniqueFd theirs = listen_at(each.theirs);
    const int port = port_of(theirs);

    const auto started = bench_->start(gang_, {serving(port, each.ours)});

    ASSERT_FALSE(started) << each.theirs << " and " << each.ours;
    EXPECT_EQ(started.error().code, base::ErrorCode::kConflict);
    EXPECT_EQ(started.error().what, "cannot start main: port " + std::to_string(port) + each.shown +
                                        " is in use by another process");
  }
}

TEST_P(TakenPorts, OnlyAtTheAddressThatIsServedMatter) {
  const base::UniqueFd theirs = listen_at("127.20.1.3");

  EXPECT_EQ(run(serving(port_of(theirs), "127.20.1.2")).status.code, 0);
}

TEST_P(TakenPorts, LeaveNoTaskOfTheGangRunning) {
  const base::UniqueFd theirs = listen_at("127.20.1.2");
  const TaskPlan other = script("exec sleep " + marker_, "other");

  ASSERT_FALSE(bench_->start(gang_, {other, serving(port_of(theirs), "127.20.1.2")}));

  EXPECT_TRUE(processes_with(marker_).empty());
}

TEST_P(TakenPorts, AreFreeAgainAfterTheirServerHasEnded) {
  base::UniqueFd theirs = listen_at("127.20.1.2");
  const int port = port_of(theirs);
  ASSERT_FALSE(bench_->start(gang_, {serving(port, "")}));

  theirs.reset();

  EXPECT_EQ(run(serving(port, "")).status.code, 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, TakenPorts,
                         testing::ValuesIn(grounds_where(&Ground::shares_network)), ground_name);

}  // namespace
}  // namespace muster::engine
