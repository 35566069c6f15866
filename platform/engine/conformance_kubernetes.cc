// The grounds of the Kubernetes engine, on the cluster that tests/kubernetes_engine.py starts and
// KUBECONFIG names: the server connects to pods through the API server, or pods call the server. The
// nodes are this machine, under several names: tasks find the scratch folder of a test at its own path.
// MUSTER_TEST_IMAGE is the image of tasks, MUSTER_NODE_IMAGE the one with muster-node;
// MUSTER_TEST_ADDRESS is this machine's address for pods, and MUSTER_TEST_STORAGE a persistent volume
// claim.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/subprocess.h"
#include "engine/conformance.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/kubernetes_engine.h"
#include "engine/kubernetes/options.h"

namespace muster::engine {

namespace fs = std::filesystem;

using kubernetes::KubernetesOptions;

namespace {

std::string required_in_cluster(const char* name) {
  const char* const value = std::getenv(name);
  if (value != nullptr) return value;
  ADD_FAILURE() << name << " is not set: run this by tests/kubernetes_engine.py";
  return "";
}

/// The name of a test's server, a label of its objects.
std::string owner_in_cluster(const fs::path& jobs_folder) {
  constexpr size_t kDigits = 16;
  std::array<char, kDigits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016zx", std::hash<std::string>{}(jobs_folder.string()));
  return text.data();
}

/// `are_called`: pods call the server; otherwise it connects to them.
KubernetesOptions options_in_cluster(BenchOptions options, bool are_called) {
  KubernetesOptions how;
  how.folder = options.folder;
  how.access.environment = base::current_environment();
  how.pods.owner = owner_in_cluster(options.folder);
  how.pods.space = "default";
  how.pods.node_image = required_in_cluster("MUSTER_NODE_IMAGE");
  how.pods.storage_claim = required_in_cluster("MUSTER_TEST_STORAGE");
  if (are_called) how.callback_hosts = {required_in_cluster("MUSTER_TEST_ADDRESS")};
  how.pod_timeout = kBound;
  how.unpack_tree = std::move(options.unpack_tree);
  how.first_sample = options.first_sample;
  how.sample_interval = options.sample_interval;
  return how;
}

/// All objects of a server.
class ClusterClearing {
 public:
  explicit ClusterClearing(std::string owner) : labels_(kubernetes::owner_selector(owner)) {
    const KubernetesOptions options = options_in_cluster({}, false);
    auto access = kubernetes::open_access(loop_, options.access);
    EXPECT_TRUE(access) << access.error().to_string();
    client_ = std::make_unique<kubernetes::ApiClient>(loop_, *std::move(access));
  }

  void run() {
    call_ = client_->remove_all(
        {.resource = kubernetes::kSecrets, .space = kSpace, .labels = labels_, .fields = ""},
        {.propagation = "Background"}, [this](const Result<void>& removed) {
          EXPECT_TRUE(removed) << removed.error().to_string();
          look();
        });
    loop_.run();
    EXPECT_EQ(left_, 0U) << "pods of the test are left in the cluster";
  }

 private:
  void look() {
    call_ = client_->list(
        {.resource = kubernetes::kPods, .space = kSpace, .labels = labels_, .fields = ""},
        [this](const Result<kubernetes::ApiClient::Listed>& listed) {
          left_ = listed ? listed->objects.size() : 1;
          if (left_ == 0 || std::chrono::steady_clock::now() > deadline_) return loop_.stop();
          pause_ = loop_.after(std::chrono::milliseconds(200), [this] { look(); });
        });
  }

  static constexpr const char* kSpace = "default";
  const std::string labels_;
  base::EventLoop loop_;
  std::unique_ptr<kubernetes::ApiClient> client_;
  kubernetes::Call call_;
  base::EventLoop::Interest pause_;
  size_t left_ = 0;
  const std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + kBound;
};

/// Deletes all objects of that server and waits until its pods are gone.
void clear_kubernetes(const fs::path& jobs_folder) {
  ClusterClearing(owner_in_cluster(jobs_folder)).run();
}

/// As prepare() finds it.
launch::ImageFacts facts_in_pod() {
  const std::string image = required_in_cluster("MUSTER_TEST_IMAGE");
  return {.image = image,
          .id = image,
          .entrypoint = {},
          .command = {},
          .environment = {},
          .folder = {},
          .account = {},
          .sshd = "/usr/sbin/sshd",
          .has_ssh = true,
          .has_shell = true};
}

TaskPlan placed_in_pod(TaskPlan plan, const fs::path& scratch) {
  if (plan.image.empty()) plan.image = required_in_cluster("MUSTER_TEST_IMAGE");
  plan.reach = launch::Reach::kNames;
  plan.resources.gpus = static_cast<int>(plan.devices.size());
  plan.volumes.push_back({.kind = job::Volume::Kind::kHostPath,
                          .source = scratch.string(),
                          .target = scratch.string()});
  return plan;
}

Ground kubernetes_ground(std::string name, bool are_called) {
  Ground made{.name = std::move(name)};
  made.make_engine = [are_called](base::EventLoop& loop, BenchOptions options) {
    return opened(KubernetesEngine::open(loop, options_in_cluster(std::move(options), are_called)));
  };
  made.placed = placed_in_pod;
  made.fill_site = [](launch::Site& site, const job::Job& job) {
    site.reach = launch::Reach::kNames;
    for (const job::Task& task : job.tasks) site.image_facts[task.name] = facts_in_pod();
  };
  made.clear = clear_kubernetes;
  made.is_container = made.names_own_gpus = true;
  made.has_fake_gpus = made.has_folders = false;
  made.keeps_volumes = made.keeps_trees = false;
  made.shares_volumes = made.hides_files = false;
  return made;
}

}  // namespace

std::vector<Ground> grounds() {
  return {kubernetes_ground("KubernetesForward", false), kubernetes_ground("KubernetesCall", true)};
}

}  // namespace muster::engine
