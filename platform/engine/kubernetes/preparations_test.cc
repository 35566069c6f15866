#include "engine/kubernetes/preparations.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "base/test_loop.h"

namespace muster::engine::kubernetes {
namespace {

/// The connection to a muster-node that has reported its image.
class ReadyLine : public node::NodeConnection {
 public:
  ReadyLine() { hello_.image.emplace(); }
  const GangId& gang() const override { return gang_; }
  const node::Hello& hello() const override { return hello_; }
  void listen(Handlers) override {}
  void send(const node::NodeMessage&) override {}
  size_t waiting() const override { return 0; }
  void pause(bool) override {}

 private:
  GangId gang_;
  node::Hello hello_;
};

class PreparationOfPods : public testing::Test, protected base::TestLoop {
 protected:
  PreparationOfPods() { table_.add_task(gang_, "main"); }

  std::unique_ptr<Preparations> preparations(std::chrono::milliseconds timeout) {
    return std::make_unique<Preparations>(
        loop(), timeout,
        Preparations::Hooks{
            .outage = [] { return std::nullopt; },
            .given_up = [](const PodGangPointer&, const std::vector<std::string>&) {}});
  }
  void connect() { gang_->task("main")->line = std::make_shared<ReadyLine>(); }

  base::TestFolder folder_;
  lent::GangTable shared_{loop(), pod_table_options(folder_ / "jobs")};
  PodGangTable table_{shared_, "owner"};
  const PodGangPointer gang_ = table_.add({.job_id = "job", .attempt = 1}, rsh::Key{});
  std::optional<base::Result<void>> done_;
};

TEST_F(PreparationOfPods, ATimeoutShowsWhetherNodesWereLacking) {
  for (const std::string node : {"", "n1"}) {
    gang_->pods.at("main").facts.emplace().node = node;
    done_.reset();
    const auto all = preparations(std::chrono::milliseconds(1));

    const auto handle = all->add(gang_, {"main"}, nullptr, into(done_));

    ASSERT_TRUE(run_until([&] { return done_.has_value(); }));
    ASSERT_FALSE(*done_);
    EXPECT_EQ(done_->error().code, base::ErrorCode::kUnavailable) << "the job is started again";
    EXPECT_EQ(base::detail_of<LackOfNodes>(done_->error()) != nullptr, node.empty());
  }
}

TEST_F(PreparationOfPods, AConnectionToAnEarlierPodDoesNotCount) {
  connect();
  EXPECT_FALSE(is_ready(*gang_, "main")) << "its pod was given up, and the next one is not there";

  gang_->pods.at("main").facts.emplace();

  EXPECT_TRUE(is_ready(*gang_, "main"));
}

TEST_F(PreparationOfPods, WaitsForTheOtherObjectsOfTheGang) {
  connect();
  gang_->pods.at("main").facts.emplace();
  gang_->has_others = false;
  gang_->missing["networkpolicies"].refusal =
      base::Error{.code = base::ErrorCode::kRefused, .what = "exceeded quota"};
  const auto all = preparations(std::chrono::hours(1));
  std::string wait_text;

  const auto handle = all->add(
      gang_, {"main"},
      [&](const job::Fact& fact) {
        wait_text = std::get<job::KubernetesWaits>(fact).text;
        look();
      },
      into(done_));

  ASSERT_TRUE(run_until([&] { return !wait_text.empty(); }));
  EXPECT_EQ(wait_text, "exceeded quota");
  EXPECT_FALSE(done_);
  gang_->missing.clear();
  gang_->has_others = true;
  all->look(gang_);
  ASSERT_TRUE(run_until([&] { return done_.has_value(); }));
  EXPECT_TRUE(*done_);
}

TEST_F(PreparationOfPods, ManyChangesInOneTurnAreOneExamination) {
  int examinations = 0;
  const auto all = std::make_unique<Preparations>(
      loop(), std::chrono::hours(1),
      Preparations::Hooks{
          .outage =
              [&] {
                ++examinations;
                look();
                return std::nullopt;
              },
          .given_up = [](const PodGangPointer&, const std::vector<std::string>&) {}});
  table_.add_task(gang_, "worker-0");
  const auto handle = all->add(gang_, {"main", "worker-0"}, nullptr, into(done_));

  for (int change = 0; change < 100; ++change) all->look(gang_);
  ASSERT_TRUE(run_until([&] { return examinations > 0; }));
  EXPECT_EQ(examinations, 1);

  for (int change = 0; change < 100; ++change) all->look(gang_);
  ASSERT_TRUE(run_until([&] { return examinations > 1; })) << "later: the pods have changed";
  EXPECT_EQ(examinations, 2);
}

TEST_F(PreparationOfPods, SucceedsAtOnceWhenItsLastTaskIsReady) {
  const auto all = preparations(std::chrono::hours(1));
  table_.add_task(gang_, "worker-0");
  const auto handle = all->add(gang_, {"main", "worker-0"}, nullptr, into(done_));
  for (const char* const task : {"main", "worker-0"}) {
    gang_->pods.at(task).facts.emplace();
    gang_->task(task)->line = std::make_shared<ReadyLine>();
    all->look(gang_);
    bool has_turned = false;
    loop().post([&] {
      has_turned = true;
      look();
    });
    ASSERT_TRUE(run_until([&] { return has_turned; }));
  }

  EXPECT_TRUE(done_) << "without the pause between two examinations";
}

TEST_F(PreparationOfPods, FailsForAGangWhoseRecordCannotBeRead) {
  gang_->is_unreadable = true;
  const auto all = preparations(std::chrono::hours(1));

  const auto handle = all->add(gang_, {"main"}, nullptr, into(done_));

  ASSERT_TRUE(run_until([&] { return done_.has_value(); }));
  ASSERT_FALSE(*done_);
  EXPECT_EQ(done_->error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace muster::engine::kubernetes
