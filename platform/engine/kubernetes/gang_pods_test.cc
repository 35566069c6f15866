#include "engine/kubernetes/gang_pods.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_text.h"
#include "base/test_folder.h"
#include "base/test_loop.h"
#include "engine/kubernetes/pod_starts.h"
#include "engine/kubernetes/test_fake_api_server.h"
#include "engine/lent/lent_tasks.h"

namespace muster::engine::kubernetes {
namespace {

/// The connection to a muster-node that has reported its image, and keeps its orders.
class OrderedLine : public node::NodeConnection {
 public:
  OrderedLine() {
    hello_.image.emplace();
    hello_.address = "10.1.2.3";
  }
  const GangId& gang() const override { return gang_; }
  const node::Hello& hello() const override { return hello_; }
  void listen(Handlers) override {}
  void send(const node::NodeMessage& message) override {
    if (const auto* const order = std::get_if<node::NodeOrder>(&message)) orders.push_back(*order);
  }
  size_t waiting() const override { return 0; }
  void pause(bool) override {}

  template <class Order>
  const Order* last() const {
    return orders.empty() ? nullptr : std::get_if<Order>(&orders.back());
  }

  std::vector<node::NodeOrder> orders;

 private:
  GangId gang_;
  node::Hello hello_;
};

/// A gang whose main task runs, and whose worker-1 is to join.
class PodsOfGang : public testing::Test, protected base::TestLoop {
 protected:
  PodsOfGang() {
    tasks_.lender.cluster = "Kubernetes";
    tasks_.lender.has_allocation = [](const lent::GangPointer&) { return true; };
    tasks_.lender.on_change = [] {};
    server_.on(creation_, [this](const http::Request&) {
      return http::Response{.status = 201,
                            .body = R"({"metadata":{"name":"x","uid":"pod-)" +
                                    std::to_string(server_.count(creation_)) +
                                    R"("},"spec":{"hostname":"w1"}})"};
    });
    server_.on(deletion_, http::Response{.body = R"({"kind":"Status","status":"Success"})"});
    look_often();
    gang_->uid = "owner-uid";
    gang_->record.given = true;
    gangs_.add_task(gang_, "main");
    gang_->seat_of(*gang_->task("main")).started = true;
  }

  /// For what the thread of the fake changes.
  void look_often() {
    timer_ = loop().after(std::chrono::milliseconds(5), [this] {
      look();
      look_often();
    });
  }

  std::shared_ptr<void> prepare_worker(const std::string& node) {
    PodJob job;
    job.gang = id_;
    job.name = "train";
    PodTask task;
    task.task = task.hostname = "worker-1";
    task.node = node;
    task.image = "pytorch:2";
    done_.reset();
    return pods_.prepare(job, {task}, nullptr, into(done_));
  }
  /// The worker has its pod on n1, and its muster-node is connected.
  std::shared_ptr<OrderedLine> prepared_worker() {
    const auto preparation = prepare_worker("n1");
    EXPECT_TRUE(run_until([&] { return worker().facts.has_value(); }));
    const auto line = std::make_shared<OrderedLine>();
    gang_->task("worker-1")->line = line;
    preparations_.look(gang_);
    EXPECT_TRUE(run_until([&] { return done_.has_value(); }));
    return line;
  }
  HeldPod& worker() { return gang_->pods.at("worker-1"); }

  void start_worker() {
    launch::TaskPlan plan;
    plan.task = plan.hostname = "worker-1";
    plan.node = "n1";
    plan.image = "pytorch:2";
    started_.reset();
    starts_.start(id_, {plan}, into(started_));
  }

  /// The request that deletes the worker's pod; null: there is none.
  Json deletion() {
    for (const http::Request& request : server_.asked()) {
      if (request.method == "DELETE") return base::parse_json(request.body);
    }
    return nullptr;
  }

  const std::string creation_ = "POST /api/v1/namespaces/lab/pods";
  const GangId id_{.job_id = "job", .attempt = 1};
  const std::string deletion_ =
      "DELETE /api/v1/namespaces/lab/pods/" + pod_name("owner", id_, "worker-1");
  base::TestFolder folder_;
  FakeApiServer server_;
  const PodSite site_{.owner = "owner", .space = "lab", .node_image = "muster-node:1"};
  ApiClient client_{loop(), std::make_unique<FakeAccess>(server_.socket()),
                    ApiOptions{.patience = std::chrono::milliseconds(0)}};
  lent::LentTasks tasks_{loop(), lent_options(), pod_table_options(folder_ / "jobs")};
  PodGangTable gangs_{tasks_.gangs, "owner"};
  ClusterView view_{loop(), client_, NodeOptions{.owner = "owner", .space = "lab"}};
  Preparations preparations_{
      loop(),
      std::chrono::hours(1),
      {.outage = [] { return std::nullopt; },
       .given_up = [this](const PodGangPointer& gang,
                          const std::vector<std::string>& names) { pods_.give_up(gang, names); }}};
  GangObjects objects_{loop(),
                       client_,
                       site_,
                       gangs_,
                       std::chrono::hours(1),
                       {.admit = [](const PodGangPointer&) { return true; },
                        .brief_of = [](const PodGang&) { return std::string("the brief"); },
                        .changed =
                            [this](const PodGangPointer& gang) {
                              preparations_.look(gang);
                              look();
                            }}};
  GangPods pods_{site_,
                 {.loop = loop(),
                  .gangs = gangs_,
                  .view = view_,
                  .objects = objects_,
                  .preparations = preparations_}};
  PodStarts starts_{
      tasks_,
      gangs_,
      {.prepare =
           [this](const PodJob& job, std::vector<PodTask> pods, Preparations::Done done) {
             return pods_.prepare(job, std::move(pods), nullptr, std::move(done));
           },
       .give_up = [this](const PodGangPointer& gang,
                         const std::vector<std::string>& names) { pods_.give_up(gang, names); },
       .gpu_model_on = [](const std::string&) { return std::string(); }}};
  const PodGangPointer gang_ = gangs_.add(id_, rsh::Key{});
  std::optional<base::Result<void>> done_;
  std::optional<base::Result<void>> started_;
  base::EventLoop::Interest timer_;

 private:
  lent::LentOptions lent_options() const {
    lent::LentOptions lent;
    lent.folder = folder_ / "jobs";
    lent.has_own_folders = true;
    return lent;
  }
};

TEST_F(PodsOfGang, AWorkerThatIsPreparedAgainOnAnotherNodeGetsAPodThere) {
  const auto line = prepared_worker();

  const auto again = prepare_worker("n2");

  EXPECT_EQ(worker().plan.node, "n2");
  EXPECT_EQ(gang_->task("worker-1")->line, nullptr) << "it leads to the pod on n1";
  EXPECT_NE(line->last<node::Farewell>(), nullptr);
  ASSERT_TRUE(run_until([&] { return server_.count(deletion_) == 1 && worker().facts; }));
  EXPECT_EQ(deletion().at("preconditions").at("uid"), "pod-1");
  EXPECT_EQ(worker().facts->uid, "pod-2");
  EXPECT_FALSE(done_) << "the muster-node of the pod on n2 has not connected";
}

TEST_F(PodsOfGang, AWorkerThatIsPreparedAgainOnItsNodeKeepsItsPod) {
  const auto line = prepared_worker();

  const auto again = prepare_worker("n1");

  ASSERT_TRUE(run_until([&] { return done_.has_value(); }));
  EXPECT_TRUE(*done_);
  EXPECT_EQ(server_.count(creation_), 1U);
  EXPECT_EQ(server_.count(deletion_), 0U);
  EXPECT_EQ(gang_->task("worker-1")->line, line);
}

TEST_F(PodsOfGang, ANodeThatTheClusterHasChosenIsNotAnotherNode) {
  const auto preparation = prepare_worker("");
  ASSERT_TRUE(run_until([&] { return worker().facts.has_value(); }));

  const auto start = prepare_worker("n1");

  EXPECT_EQ(worker().plan.node, "");
  EXPECT_TRUE(worker().facts);
}

TEST_F(PodsOfGang, AWorkerThatWasPreparedAndIsStoppedLosesItsPod) {
  const auto line = prepared_worker();

  starts_.stop(id_, {"worker-1", "main"});

  EXPECT_FALSE(worker().is_desired);
  EXPECT_NE(line->last<node::Farewell>(), nullptr);
  ASSERT_TRUE(run_until([&] { return server_.count(deletion_) == 1; }));
  EXPECT_FALSE(gang_->is_releasing) << "main runs";
}

TEST_F(PodsOfGang, AWorkerWhoseStartFailsLosesItsPod) {
  const auto line = prepared_worker();
  start_worker();
  ASSERT_TRUE(run_until([&] { return line->last<node::StartOrder>() != nullptr; }));
  using Hosts = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(line->last<node::StartOrder>()->plan.hosts, (Hosts{{"w1", "10.1.2.3"}}));

  gang_->task("worker-1")
      ->start->on_answer(gang_->task("worker-1"),
                         base::Error{.code = base::ErrorCode::kInternal, .what = "no shim"});

  ASSERT_TRUE(run_until([&] { return started_.has_value(); }));
  EXPECT_FALSE(*started_);
  ASSERT_TRUE(run_until([&] { return server_.count(deletion_) == 1; }));
  EXPECT_FALSE(worker().is_desired);
  EXPECT_FALSE(gang_->is_releasing) << "main runs";
}

}  // namespace
}  // namespace muster::engine::kubernetes
