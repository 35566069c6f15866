#include "engine/fake_engine.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

class Fake : public testing::Test {
 protected:
  void settle() {
    for (int round = 0; round < 3; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }

  void start(const std::string& task, const std::string& node) {
    engine_.start(gang_, {{.task = task, .node = node}},
                  [](const Result<void>& started) { EXPECT_TRUE(started); });
    settle();
  }

  const GangId gang_{"j1", 1};
  base::EventLoop loop_;
  FakeEngine engine_{loop_};
};

TEST_F(Fake, NotifiesWatchersOfItsNodesWhileTheyKeepTheirHandle) {
  int notifications = 0;
  auto interest = engine_.watch_nodes([&] { ++notifications; });

  engine_.set_nodes({fake_node("n1", 8), fake_node("n2", 8)});
  EXPECT_EQ(notifications, 1);
  EXPECT_EQ(engine_.nodes().size(), 2U);

  interest.reset();
  engine_.set_nodes({});
  EXPECT_EQ(notifications, 1);
}

TEST_F(Fake, RecordsTheNodeOfEachTask) {
  engine_.set_nodes({fake_node("n1"), fake_node("n2")});
  start("worker-0", "n1");
  start("worker-1", "n2");

  EXPECT_EQ(engine_.tasks_on("n2"), std::vector<std::string>{"j1/1 worker-1"});
}

TEST_F(Fake, TheTasksOfARemovedNodeAreLost) {
  engine_.set_nodes({fake_node("n1"), fake_node("n2")});
  start("worker-0", "n1");
  start("worker-1", "n2");
  std::vector<std::string> lost;
  engine_.listen([&](const TaskReport& report) {
    const auto* end = std::get_if<TaskEnded>(&report.what);
    if (end != nullptr && end->status.lost) lost.push_back(report.task);
  });

  engine_.lose_node("n1");

  EXPECT_EQ(lost, std::vector<std::string>{"worker-0"});
  ASSERT_EQ(engine_.nodes().size(), 1U);
  EXPECT_EQ(engine_.nodes()[0].name, "n2");
  EXPECT_EQ(engine_.running.size(), 1U);
}

}  // namespace
}  // namespace muster::engine
