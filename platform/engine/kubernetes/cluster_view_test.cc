#include "engine/kubernetes/cluster_view.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/test_loop.h"
#include "engine/kubernetes/pod.h"
#include "engine/kubernetes/test_fake_api_server.h"

namespace muster::engine::kubernetes {
namespace {

using std::chrono::milliseconds;

const std::string kAllPods = "GET /api/v1/pods";
const std::string kJobPods = "GET /api/v1/namespaces/training/pods";

std::string viewed_pod(const std::string& name) {
  return base::json_text(
      Json{{"metadata",
            {{"namespace", "training"},
             {"name", name},
             {"uid", "uid-" + name},
             {"resourceVersion", "1"},
             {"labels", {{kOwnerKey, "me"}, {kGangKey, "gang"}, {kTaskKey, name}}}}}});
}

std::string added(const std::string& object) {
  return R"({"type":"ADDED","object":)" + object + "}";
}

/// The end of the list, or a later position.
std::string bookmark() {
  return R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5",)"
         R"("annotations":{"k8s.io/initial-events-end":"true"}}}})";
}

class ClusterViewTest : public testing::Test, protected base::TestLoop {
 protected:
  ClusterViewTest() {
    client_ = std::make_unique<ApiClient>(
        loop(), std::make_unique<FakeAccess>(server_.socket()),
        ApiOptions{.patience = milliseconds(0), .first_pause = milliseconds(1)});
    view_ = std::make_unique<ClusterView>(loop(), *client_,
                                          NodeOptions{.owner = "me", .space = "training"});
  }

  void begin() {
    view_->begin({.on_pod = [this](const OwnPod& own) { note("+" + own.task); },
                  .on_pod_gone = [this](const OwnPod& own) { note("-" + own.task); },
                  .on_warning = [](const PodEvent&) {},
                  .on_synced = [this] { note("synced"); },
                  .on_reach = [this] { look(); }});
  }

  void note(const std::string& text) {
    notes_.push_back(text);
    look();
  }

  void expect(const std::vector<std::string>& notes) {
    EXPECT_TRUE(run_until([&] { return notes_.size() >= notes.size(); }));
    EXPECT_EQ(notes_, notes);
    notes_.clear();
  }

  /// For what the thread of the fake changes.
  void look_often() {
    timer_ = loop().after(milliseconds(5), [this] {
      look();
      look_often();
    });
  }

  FakeApiServer server_;
  std::unique_ptr<ApiClient> client_;
  std::unique_ptr<ClusterView> view_;
  std::vector<std::string> notes_;
  base::EventLoop::Interest timer_;
};

TEST_F(ClusterViewTest, WatchesItsOwnPodsWhileItMayNotWatchThoseOfAllNamespaces) {
  const auto before = server_.watch();
  const auto own = server_.watch();
  const auto own_again = server_.watch();
  const auto after = server_.watch();
  http::Response refused =
      FakeApiServer::refusal(403, "Forbidden", "pods is forbidden: RBAC: not found");
  server_.on(kAllPods, {[&](const http::Request&) { return before->answer(); },
                        [&](const http::Request&) { return refused; }});
  server_.on(kJobPods, {[&](const http::Request&) { return own->answer(); },
                        [&](const http::Request&) { return own_again->answer(); }});
  begin();
  before->push(added(viewed_pod("a")));
  before->push(added(viewed_pod("b")));
  before->push(bookmark());
  expect({"+a", "+b", "synced"});

  before->end();
  own->push(added(viewed_pod("a")));
  own->push(bookmark());
  expect({"+a", "-b"});
  EXPECT_FALSE(view_->outage());
  own->push(added(viewed_pod("d")));
  expect({"+d"});

  server_.on(kAllPods, [&](const http::Request&) { return after->answer(); });
  after->push(added(viewed_pod("c")));
  expect({"+c"});
  own_again->push(added(viewed_pod("a")));
  own_again->push(bookmark());
  expect({"-d"});  // it went while the other watch had not yet begun
  look_often();
  EXPECT_TRUE(run_until([&] { return own_again->is_left(); })) << "the other has all pods again";
}

/// The requests of pods of others change all the time in a large cluster.
TEST_F(ClusterViewTest, ManyChangesOfNodesAreFewReports) {
  const auto pods = server_.watch();
  const auto nodes = server_.watch();
  server_.on(kAllPods, [&](const http::Request&) { return pods->answer(); });
  server_.on("GET /api/v1/nodes", [&](const http::Request&) { return nodes->answer(); });
  begin();
  nodes->push(added(base::json_text(
      Json{{"metadata", {{"name", "n1"}, {"resourceVersion", "1"}}},
           {"status", {{"allocatable", {{"cpu", "200"}, {"memory", "1Gi"}, {"pods", "110"}}}}}})));
  nodes->push(bookmark());
  pods->push(bookmark());
  look_often();
  ASSERT_TRUE(run_until([&] { return !view_->nodes().empty(); }));
  int reports = 0;
  int64_t reported_cpus = 0;
  const auto watcher = view_->watch_nodes([&] {
    ++reports;
    reported_cpus = view_->nodes().at(0).cpu_milli;
    look();
  });
  notes_.clear();

  const auto begin_of_changes = std::chrono::steady_clock::now();
  for (int change = 1; change <= 100; ++change) {
    const Json container{{"name", "c"},
                         {"resources", {{"requests", {{"cpu", std::to_string(change)}}}}}};
    pods->push(added(base::json_text(
        Json{{"metadata",
              {{"namespace", "others"},
               {"name", "x"},
               {"uid", "x"},
               {"resourceVersion", std::to_string(10 + change)}}},
             {"spec", {{"nodeName", "n1"}, {"containers", Json::array({container})}}},
             {"status", {{"phase", "Running"}}}})));
    const std::string mark = "mark-" + std::to_string(change);
    pods->push(added(viewed_pod(mark)));
    expect({"+" + mark});  // in another turn of the loop
  }

  ASSERT_TRUE(run_until([&] { return reported_cpus == 100'000; })) << "the last change";
  const auto took = std::chrono::steady_clock::now() - begin_of_changes;
  EXPECT_LE(reports, 2 + took / ClusterView::kReportAgain);
}

}  // namespace
}  // namespace muster::engine::kubernetes
