// muster-node in pods of a real cluster: under the profile "restricted", in an image that holds one
// static program, reached by the API server's port-forward. tests/kubernetes_node.py runs this
// program: it starts the cluster.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "engine/kubernetes/access.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/streams.h"
#include "engine/node/test_pod.h"

namespace muster::engine::node {
namespace {

using kubernetes::ApiClient;
using kubernetes::Json;

constexpr uint16_t kPort = 7787;

std::string variable_of_test(const char* name) {
  const char* value = std::getenv(name);
  EXPECT_NE(value, nullptr) << name << " is not set: run tests/kubernetes_node.py";
  return value == nullptr ? "" : value;
}

class NodeInCluster : public TestPodServer {
 protected:
  NodeInCluster() {
    auto access =
        kubernetes::open_access(loop_.loop(), {.kubeconfig = {variable_of_test("KUBECONFIG")},
                                               .environment = base::current_environment()});
    EXPECT_TRUE(access) << access.error().to_string();
    if (access) client_ = std::make_unique<ApiClient>(loop_.loop(), *std::move(access));
    base::SystemRandom random;
    space_ = "node-" + base::random_name(random, 6);
    create(
        kubernetes::kNamespaces, "",
        {{"apiVersion", "v1"},
         {"kind", "Namespace"},
         {"metadata",
          {{"name", space_}, {"labels", {{"pod-security.kubernetes.io/enforce", "restricted"}}}}}});
  }
  ~NodeInCluster() override {
    line_.reset();
    static_cast<void>(ask<void>([&](auto then) {
      return client_->remove({kubernetes::kNamespaces, "", space_}, {}, then);
    }));
  }

  template <class Value, class Ask>
  Result<Value> ask(Ask ask) {
    kubernetes::Call call;
    return loop_.answer<Value>([&](auto then) { call = ask(then); });
  }

  void create(const kubernetes::Resource& resource, const std::string& space, const Json& object) {
    const auto made =
        ask<Json>([&](auto then) { return client_->create(resource, space, object, then); });
    EXPECT_TRUE(made) << made.error().to_string();
  }

  Json pod() {
    auto found = ask<Json>(
        [&](auto then) { return client_->get({kubernetes::kPods, space_, "main"}, then); });
    return found ? *std::move(found) : Json::object();
  }

  /// Polls until `holds` is true.
  void wait_for_pod(const std::function<bool(const Json&)>& is_so) {
    for (int i = 0; i < 600; ++i) {
      if (is_so(pod())) return;
      bool passed = false;
      const auto timer = loop_.loop().after(std::chrono::milliseconds(100), [&] {
        passed = true;
        loop_.look();
      });
      ASSERT_TRUE(loop_.run_until([&] { return passed; }));
    }
    FAIL() << pod().dump(2);
  }

  void run_pod_of(const std::string& image) {
    NodeBrief brief = pod_brief();
    brief.port = kPort;
    create(kubernetes::kSecrets, space_,
           {{"apiVersion", "v1"},
            {"kind", "Secret"},
            {"metadata", {{"name", "main"}}},
            {"stringData", {{"brief", encode(brief)}}}});
    const auto field = [](const char* name, const char* path) {
      return Json{{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
    };
    const Json rights{{"allowPrivilegeEscalation", false},
                      {"readOnlyRootFilesystem", true},
                      {"capabilities", {{"drop", {"ALL"}}}}};
    const auto mount = [](const char* name, const char* path) {
      return Json{{"name", name}, {"mountPath", path}};
    };
    const auto empty = [](const char* name) {
      return Json{{"name", name}, {"emptyDir", Json::object()}};
    };
    const Json init{{"name", "install"},
                    {"image", "localhost/muster-node:test"},
                    {"command", {"/muster-node", "--install", "/install", "/brief/brief"}},
                    {"securityContext", rights},
                    {"volumeMounts", {mount("muster", "/install"), mount("brief", "/brief")}}};
    const Json main{
        {"name", "main"},
        {"image", image},
        {"command", {"/muster/bin/muster-node", "--pod", kPodBrief}},
        {"env",
         {field(kPodNode, "spec.nodeName"),
          field(kPodUid, "metadata.uid"),
          field(kPodAddress, "status.podIP"),
          {{"name", kPodGrace}, {"value", "30"}}}},
        {"securityContext", rights},
        {"volumeMounts", {mount("muster", "/muster"), mount("generated", "/generated")}}};
    create(
        kubernetes::kPods, space_,
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", {{"name", "main"}}},
         {"spec",
          {{"restartPolicy", "Never"},
           {"automountServiceAccountToken", false},
           {"securityContext",
            {{"runAsNonRoot", true},
             {"runAsUser", 1000},
             {"runAsGroup", 1000},
             {"fsGroup", 1000},
             {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
           {"initContainers", {init}},
           {"containers", {main}},
           {"volumes",
            {empty("muster"),
             empty("generated"),
             {{"name", "brief"}, {"secret", {{"secretName", "main"}, {"defaultMode", 0440}}}}}}}}});
    wait_for_pod([](const Json& each) {
      return each.value("/status/phase"_json_pointer, std::string()) == "Running";
    });
  }

  std::string complaints() const override { return "see the log of pod main in " + space_; }

  std::unique_ptr<PeerStream> stream_to_pod() override {
    auto stream = ask<std::unique_ptr<PeerStream>>(
        [&](auto then) { return kubernetes::open_port(*client_, space_, "main", kPort, then); });
    EXPECT_TRUE(stream) << stream.error().to_string();
    return stream ? *std::move(stream) : nullptr;
  }

  /// Connects to the port, and tries again while the port is not open.
  void meet_in_cluster() {
    for (int i = 0; i < 100 && line_ == nullptr; ++i) {
      auto line = dial(0, key_);
      if (line && *line) take(**std::move(line));
    }
    ASSERT_NE(line_, nullptr);
  }

  StartOrder order_in_cluster(std::vector<std::string> argv) const {
    StartOrder order = pod_order(std::move(argv));
    order.programs = kPodPrograms;
    return order;
  }

  /// The container's exit code, once it has ended.
  int code_of_pod() {
    const Json::json_pointer code("/status/containerStatuses/0/state/terminated/exitCode");
    wait_for_pod([&](const Json& each) { return each.contains(code); });
    return pod().value(code, -1);
  }

  std::unique_ptr<ApiClient> client_;
  std::string space_;
};

TEST_F(NodeInCluster, HoldsATaskInAnEmptyImage) {
  run_pod_of("localhost/muster-test-empty:test");
  meet_in_cluster();
  const Hello hello = line_->hello();
  EXPECT_EQ(hello.facts.instance, pod().at("metadata").at("uid"));
  EXPECT_EQ(hello.facts.node, pod().at("spec").at("nodeName"));
  EXPECT_EQ(hello.address, pod().at("status").at("podIP"));
  ASSERT_TRUE(hello.image);
  EXPECT_EQ(hello.image->account.uid, 1000U);
  EXPECT_FALSE(hello.image->has_shell);

  StartOrder asked = order_in_cluster({"/program", "wait"});
  asked.plan.files = {{.path = "hostfile", .content = "a slots=1\n"}};
  start_in_pod(asked);
  auto run = [this, stream = uint64_t{10}](std::vector<std::string> argv) mutable {
    PodProgram program;
    line_->send(ExecOrder{++stream, {.argv = std::move(argv), .environment = {}}});
    connect_program(stream, program);
    wait_in_pod([&] { return program.status.has_value(); });
    return program.output;
  };
  EXPECT_EQ(run({"/program", "stat", "/generated/hostfile"}), "0600 1000:1000 f");
  EXPECT_NE(run({"/program", "capabilities"}).find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_EQ(run({"/program", "stat", kPodBrief}), "") << "the task could read the key";

  line_->send(StopOrder{StopMode::kGraceful});
  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 15);
  EXPECT_EQ(log(), "ready\n");
  line_->send(Farewell{15});
  EXPECT_EQ(code_of_pod(), 15);
}

TEST_F(NodeInCluster, TheLogIsCompleteOverLostConnections) {
  run_pod_of("localhost/muster-test-busybox:test");
  meet_in_cluster();
  EXPECT_TRUE(line_->hello().image && line_->hello().image->has_shell);
  StartOrder asked = order_in_cluster(
      {"/bin/sh", "-c", "i=0; while [ $i -lt 50000 ]; do echo line $i; i=$((i+1)); done"});
  asked.plan.environment["PATH"] = "/bin";
  start_in_pod(asked);
  for (int meetings = 1; meetings < 6 && find<EndedNews>() == nullptr; ++meetings) {
    const size_t before = news_.size();
    wait_in_pod([&] { return news_.size() > before + 2 || find<EndedNews>() != nullptr; });
    if (find<EndedNews>() != nullptr) break;
    line_.reset();
    meet_in_cluster();
  }

  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 0);

  std::string whole;
  for (int i = 0; i < 50000; ++i) whole += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(log(), whole);
  line_->send(Farewell{0});
  EXPECT_EQ(code_of_pod(), 0);
}

TEST_F(NodeInCluster, ADeletedPodReportsTheSignalBeforeTheEnd) {
  run_pod_of("localhost/muster-test-empty:test");
  meet_in_cluster();
  start_in_pod(order_in_cluster({"/program", "wait"}));
  wait_in_pod([&] { return log() == "ready\n"; });

  static_cast<void>(ask<void>(
      [&](auto then) { return client_->remove({kubernetes::kPods, space_, "main"}, {}, then); }));

  EXPECT_EQ(wait_in_pod_for<EndedNews>().end.status.code, 15);
  EXPECT_EQ(wait_in_pod_for<SignalledNews>().signal, SIGTERM);
  line_->send(Farewell{0});
  wait_for_pod([](const Json& each) { return each.empty(); });
}

}  // namespace
}  // namespace muster::engine::node
