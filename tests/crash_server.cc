// A server that kills itself with SIGKILL right after its N-th commit, for e2e_crash_points.py: as
// main.cc wires it, but for the store. N: MUSTER_CRASH_AFTER_COMMIT. Declares the GPUs of
// MUSTER_DECLARE_GPUS.
//
//   crash_server SHIM
//
// Serves on the paths of this environment; prints "ready" once its socket is open.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "base/event_loop.h"
#include "base/files.h"
#include "cli/paths.h"
#include "control/controller.h"
#include "engine/process/declared_gpus.h"
#include "engine/process/host_facts.h"
#include "engine/process/process_engine.h"
#include "http/server.h"
#include "server/app.h"
#include "store/sqlite_store.h"

namespace {

using muster::base::Result;
using muster::cli::Paths;
using muster::store::Store;

class CrashingStore : public Store {
 public:
  CrashingStore(Store& store, int commits_left) : store_(store), commits_left_(commits_left) {}

  Result<muster::store::Contents> load() override { return store_.load(); }
  Result<std::optional<std::string>> find_by_key(const std::string& key) override {
    return store_.find_by_key(key);
  }
  Result<void> commit(const muster::store::Batch& batch) override {
    const Result<void> done = store_.commit(batch);
    if (done && --commits_left_ == 0) ::kill(::getpid(), SIGKILL);
    return done;
  }

 private:
  Store& store_;
  int commits_left_;
};

int commits_until_crash() {
  const char* text = std::getenv("MUSTER_CRASH_AFTER_COMMIT");
  return text == nullptr ? 0 : std::atoi(text);
}

Result<void> serve(const Paths& paths, const std::filesystem::path& shim) {
  MUSTER_CHECK(muster::cli::make_folders(paths));
  MUSTER_TRY(const auto lock, muster::base::lock_file(paths.state_folder / "server.lock"));
  MUSTER_TRY(const auto sqlite, muster::store::SqliteStore::open(paths.state_folder / "muster.db"));
  CrashingStore store(*sqlite, commits_until_crash());

  muster::base::EventLoop loop;
  const muster::base::SystemClock clock;
  muster::base::SystemRandom random;
  MUSTER_CHECK(muster::base::make_private_folder(paths.state_folder / "jobs"));
  muster::engine::ProcessEngineOptions options{.folder = paths.state_folder / "jobs", .shim = shim};
  if (const char* declared = std::getenv("MUSTER_DECLARE_GPUS")) {
    MUSTER_TRY(options.declared_gpus, muster::engine::parse_declared_gpus(declared));
  }
  muster::engine::ProcessEngine engine(loop, std::move(options));
  muster::control::Controller controller(
      {.loop = loop, .store = store, .engine = engine, .clock = clock, .random = random},
      {.user = muster::engine::user_name(), .rank_agent = shim});
  MUSTER_CHECK(controller.recover());

  muster::server::App app(
      loop, controller,
      {.version = MUSTER_VERSION, .state_folder = paths.state_folder.string(), .idle_exit = {}},
      [&loop] { loop.post([&loop] { loop.stop(); }); });
  muster::http::Server server(loop, app.handler());
  MUSTER_CHECK(server.listen(paths.socket));
  std::cout << "ready" << std::endl;
  loop.run();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: crash_server SHIM\n";
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  const auto paths = muster::cli::paths_here(std::nullopt);
  const Result<void> served = paths ? serve(*paths, argv[1]) : Result<void>(paths.error());
  if (served) return 0;
  std::cerr << "crash_server: " << served.error().to_string() << "\n";
  return 1;
}
