// The grounds of the Slurm engine, on the cluster that tests/slurm_engine.py starts: nodes that see
// the server's folder, and nodes that do not. All are this machine, under several names: tasks find
// the scratch folder of a test at its own path.
#include "engine/conformance_slurm.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "base/unique_fd.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/slurm_engine.h"

namespace muster::engine {

namespace fs = std::filesystem;

using slurm::ListedJob;
using slurm::SlurmEngineOptions;

namespace {

/// A step that could not report its end to the controller tries again a minute later. Until then its
/// job is completing, and no other job gets the node.
constexpr std::chrono::seconds kSlurmBound = 3 * kBound;

std::string variable_or_empty(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The tasks that join a gang later in the suite's tests.
std::vector<std::string> tasks_to_seat(const std::vector<TaskPlan>& first) {
  std::set<std::string> names;
  for (const TaskPlan& plan : first) {
    names.insert(plan.task);
    if (plan.task.starts_with("worker-")) names.insert("launcher");
    if (plan.task == "a") names.insert({"b", "c"});
    if (plan.task == "sink") names.insert("source");
    if (plan.task == "main") names.insert({"good", "late", "other"});
    for (const job::Volume& volume : plan.volumes) {
      if (volume.kind == job::Volume::Kind::kStorage) names.insert({"next", "other"});
    }
  }
  return {names.begin(), names.end()};
}

std::vector<uint64_t> jobs_of(const std::string& owner, const std::vector<ListedJob>& listed) {
  std::vector<uint64_t> ids;
  for (const ListedJob& job : listed) {
    if (job.comment.find(":" + owner + ":") != std::string::npos && !is_over(job.state)) {
      ids.push_back(job.id);
    }
  }
  return ids;
}

Ground slurm_ground(std::string name, node::Sharing sharing) {
  Ground made{.name = std::move(name)};
  made.make_engine = [sharing](base::EventLoop& loop, BenchOptions options) {
    return opened(SlurmEngine::open(loop, test_options(std::move(options), sharing)));
  };
  made.placed = [](TaskPlan plan, const fs::path&) { return plan; };
  made.fill_site = [](launch::Site&, const job::Job&) {};
  made.clear = clear_slurm;
  made.tasks_to_seat = tasks_to_seat;
  made.bound = kSlurmBound;
  made.is_sandbox = made.shows_tmp = true;
  made.has_fake_gpus = false;
  made.has_folders = sharing != node::Sharing::kNo;
  made.keeps_volumes = made.keeps_trees = made.has_storage = sharing != node::Sharing::kNo;
  return made;
}

}  // namespace

std::string test_owner(const fs::path& jobs_folder) {
  constexpr size_t kDigits = 16;
  std::array<char, kDigits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016zx", std::hash<std::string>{}(jobs_folder.string()));
  return text.data();
}

SlurmEngineOptions test_options(BenchOptions options, node::Sharing sharing) {
  if (variable_or_empty("SLURM_CONF").empty()) {
    ADD_FAILURE() << "SLURM_CONF is not set: run this by tests/slurm_engine.py";
  }
  SlurmEngineOptions how;
  how.folder = options.folder;
  how.programs = fs::path(MUSTER_SHIM).parent_path();
  how.owner = test_owner(options.folder);
  how.rest = variable_or_empty("MUSTER_SLURM_REST");
  how.callback_bind = "127.0.0.1";
  how.callback_hosts = {"127.0.0.1"};
  how.sharing = sharing;
  how.node_folder = (options.folder.parent_path() / "on-nodes").string();
  how.tasks_per_node = 8;
  how.quick_poll = how.slow_poll = std::chrono::milliseconds(400);
  how.nodes_poll = std::chrono::milliseconds(1000);
  how.storage_folder = options.storage();
  how.hidden = options.hidden();
  how.unpack_tree = std::move(options.unpack_tree);
  how.first_sample = options.first_sample;
  how.sample_interval = options.sample_interval;
  return how;
}

void clear_slurm(const fs::path& jobs_folder) {
  base::EventLoop loop;
  SlurmEngineOptions how;
  how.rest = variable_or_empty("MUSTER_SLURM_REST");
  auto client = slurm::open_client(loop, how);
  ASSERT_TRUE(client) << client.error().to_string();
  const std::string owner = test_owner(jobs_folder);
  const auto deadline = std::chrono::steady_clock::now() + kSlurmBound;
  base::EventLoop::Interest pause;
  std::set<uint64_t> cancelled;
  bool is_over = false;
  std::function<void()> look = [&] {
    (*client)->jobs([&](Result<std::vector<ListedJob>> listed) {
      const auto left = listed ? jobs_of(owner, *listed) : std::vector<uint64_t>{};
      is_over = listed && left.empty();
      if (is_over || std::chrono::steady_clock::now() > deadline) return loop.stop();
      std::vector<uint64_t> more;
      for (const uint64_t id : left) {
        if (cancelled.insert(id).second) more.push_back(id);
      }
      const auto again = [&](const Result<void>&) {
        pause = loop.after(std::chrono::milliseconds(100), look);
      };
      more.empty() ? again({}) : (*client)->cancel(more, again);
    });
  };
  look();
  loop.run();
  EXPECT_TRUE(is_over) << "jobs of the test are left in Slurm";
}

void control_cluster(const std::string& what) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = variable_or_empty("MUSTER_ENGINE_CONTROL");
  ASSERT_TRUE(!path.empty() && path.size() < sizeof address.sun_path) << path;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  ASSERT_TRUE(base::write_all(socket.get(), what + "\n"));
  std::string answer;
  std::array<char, 512> buffer{};
  for (ssize_t count = 1; count > 0;) {
    count = ::read(socket.get(), buffer.data(), buffer.size());
    if (count > 0) answer.append(buffer.data(), static_cast<size_t>(count));
  }
  ASSERT_EQ(answer, "done\n") << what;
}

std::vector<Ground> grounds() {
  return {slurm_ground("SlurmShared", node::Sharing::kAuto),
          slurm_ground("SlurmNotShared", node::Sharing::kNo)};
}

}  // namespace muster::engine
