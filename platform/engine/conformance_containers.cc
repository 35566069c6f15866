// The ground of the container engine: containers of the engine whose socket MUSTER_DOCKER_SOCKET
// names, in the image that MUSTER_TEST_IMAGE names (scripts/test_images.sh makes it).
#include "engine/conformance_containers.h"

#include <cstdlib>

#include "engine/container/labels.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

std::string required_variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) {
    ADD_FAILURE() << name << " is not set: run this by tests/containers_engine.py";
    return "";
  }
  return value;
}

/// As prepare() finds it.
launch::ImageFacts facts_of_image() {
  return {.image = test_image(),
          .id = test_image(),
          .entrypoint = {},
          .command = {},
          .environment = {},
          .folder = {},
          .account = {},
          .sshd = "/usr/sbin/sshd",
          .has_ssh = true,
          .has_shell = true};
}

TaskPlan placed(TaskPlan plan, const fs::path& scratch) {
  if (plan.image.empty()) plan.image = test_image();
  plan.node = kTestHost;
  plan.reach = launch::Reach::kNames;
  plan.volumes.push_back({.kind = job::Volume::Kind::kHostPath,
                          .source = scratch.string(),
                          .target = scratch.string()});
  return plan;
}

void fill_site(launch::Site& site, const job::Job& job) {
  site.reach = launch::Reach::kNames;
  for (const job::Task& task : job.tasks) site.image_facts[task.name] = facts_of_image();
}

/// All that carries the owner's label: jobs that no test removes.
class Clearing {
 public:
  explicit Clearing(const fs::path& jobs_folder)
      : filters_(as_filters({{kOwnerLabel, test_owner(jobs_folder)}})),
        client_(loop_, UnixEndpoint{test_socket()}) {}

  void run() {
    const auto listed = wait();
    client_.list(filters_, [this, listed](const auto& containers) {
      for (const ContainerState& state : *containers) client_.remove(state.id, wait());
      client_.networks(filters_, [this, listed](const auto& networks) {
        for (const auto& each : *networks) client_.remove_network(each.first, wait());
        client_.volumes(filters_, [this, listed](const auto& volumes) {
          for (const auto& each : *volumes) client_.remove_volume(each.first, wait());
          listed({});
        });
      });
    });
    loop_.run();
  }

 private:
  /// Called when a container is removed.
  DockerClient::Done wait() {
    ++left_;
    return [this](const Result<void>& removed) {
      EXPECT_TRUE(removed) << removed.error().to_string();
      if (--left_ == 0) loop_.stop();
    };
  }

  std::vector<std::string> filters_;
  int left_ = 0;
  base::EventLoop loop_;
  DockerClient client_;
};

}  // namespace

std::string test_socket() {
  return required_variable("MUSTER_DOCKER_SOCKET");
}

std::string test_image() {
  return required_variable("MUSTER_TEST_IMAGE");
}

std::string test_owner(const fs::path& jobs_folder) {
  return jobs_folder.parent_path().filename().string();
}

ContainerEngineOptions test_options(BenchOptions options) {
  ContainerEngineOptions how;
  how.folder = options.folder;
  how.programs = fs::path(MUSTER_SHIM).parent_path();
  how.owner = test_owner(options.folder);
  how.hosts = {{.name = kTestHost,
                .endpoint = UnixEndpoint{test_socket()},
                .address = {},
                .declared_gpus = DeclaredGpus{.count = 4, .model = "A100"}}};
  how.hidden = options.hidden();
  how.hidden.push_back(options.storage());
  how.first_sample = options.first_sample;
  how.sample_interval = options.sample_interval;
  how.unpack_tree = std::move(options.unpack_tree);
  how.patience.meeting = std::chrono::minutes(2);  // a busy machine starts Podman slowly
  return how;
}

std::vector<Ground> grounds() {
  Ground containers{.name = "Containers"};
  containers.make_engine = [](base::EventLoop& loop, BenchOptions options) {
    return opened(ContainerEngine::open(loop, test_options(std::move(options))));
  };
  containers.placed = placed;
  containers.fill_site = fill_site;
  containers.clear = [](const fs::path& jobs_folder) { Clearing(jobs_folder).run(); };
  containers.is_container = true;
  containers.has_fake_gpus = containers.has_folders = false;
  containers.keeps_volumes = false;
  return {containers};
}

}  // namespace muster::engine
