// The muster program, and the one place that names every engine and every store: everything else
// knows only the interfaces.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/paths.h"
#include "control/controller.h"
#include "engine/process/declared_gpus.h"
#include "engine/process/host_facts.h"
#include "engine/process/process_engine.h"
#include "http/server.h"
#include "schedule/scheduler.h"
#include "server/app.h"
#include "store/sqlite_store.h"

namespace {

using muster::base::Error;
using muster::base::Result;
using muster::base::UniqueFd;
using muster::cli::Paths;
using muster::cli::ServeOptions;

constexpr const char* kVersion = MUSTER_VERSION;

/// The shim stands beside this program where it was built, and in ../libexec where it is installed.
std::filesystem::path shim_path() {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path installed = folder.parent_path() / "libexec/muster/muster-shim";
  return std::filesystem::exists(installed) ? installed : folder / "muster-shim";
}

UniqueFd watch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// Tells whoever started this server that its socket is open.
void tell_ready(int fd) {
  if (fd < 0) return;
  [[maybe_unused]] const auto told = muster::base::write_all(fd, "r");
  ::close(fd);
}

Result<muster::engine::ProcessEngineOptions> engine_options_of(const Paths& paths,
                                                               const ServeOptions& options) {
  muster::engine::ProcessEngineOptions result{.folder = paths.state_folder / "jobs",
                                              .shim = shim_path(),
                                              .node_pool = options.node_pool,
                                              .topology = options.topology};
  if (!options.declared_gpus.empty()) {
    MUSTER_TRY(result.declared_gpus, muster::engine::parse_declared_gpus(options.declared_gpus));
  }
  return result;
}

Result<muster::schedule::Options> scheduler_options_of(const ServeOptions& options) {
  using muster::schedule::Packing;
  const std::map<std::string, Packing> packings{{"fragmentation", Packing::kFragmentation},
                                                {"pack", Packing::kPack},
                                                {"spread", Packing::kSpread}};
  const auto packing = packings.find(options.packing);
  if (packing == packings.end()) {
    return Error{.code = muster::base::ErrorCode::kInvalid,
                 .what = "'" + options.packing + "' is no way of packing",
                 .advice = "it is one of fragmentation, pack and spread"};
  }
  return muster::schedule::Options{.packing = packing->second,
                                   .stale_grace = options.stale_grace,
                                   .decay = options.decay,
                                   .patience = options.patience,
                                   .forbearance = options.forbearance};
}

Result<void> serve(const Paths& paths, const ServeOptions& options) {
  MUSTER_CHECK(muster::cli::make_folders(paths));
  auto lock = muster::base::lock_file(paths.state_folder / "server.lock");
  if (!lock) {
    return Error{.code = lock.error().code,
                 .what = "another server uses '" + paths.state_folder.string() + "'",
                 .advice = "muster server --stop ends it; MUSTER_STATE_DIR chooses another folder"};
  }
  MUSTER_TRY(const auto store, muster::store::SqliteStore::open(paths.state_folder / "muster.db"));

  muster::base::EventLoop loop;
  const muster::base::SystemClock clock;
  muster::base::SystemRandom random;
  MUSTER_CHECK(muster::base::make_private_folder(paths.state_folder / "jobs"));
  MUSTER_TRY(auto engine_options, engine_options_of(paths, options));
  MUSTER_TRY(const auto scheduler_options, scheduler_options_of(options));
  muster::engine::ProcessEngine engine(loop, std::move(engine_options));
  muster::control::Controller controller(
      {.loop = loop, .store = *store, .engine = engine, .clock = clock, .random = random},
      {.user = muster::engine::user_name(), .rank_agent = shim_path()}, scheduler_options);
  MUSTER_CHECK(controller.recover());

  muster::server::App app(loop, controller,
                          {.version = kVersion,
                           .state_folder = paths.state_folder.string(),
                           .idle_exit = options.idle_exit},
                          [&loop] { loop.post([&loop] { loop.stop(); }); });
  muster::http::Server server(loop, app.handler());
  MUSTER_CHECK(server.listen(paths.socket));

  const UniqueFd signals = watch_signals();
  const auto stop_on_signal = loop.when_readable(signals.get(), [&loop] { loop.stop(); });
  tell_ready(options.ready_fd);
  muster::base::log_info("serves on " + paths.socket.string());
  loop.run();
  server.close();
  muster::base::log_info("leaves; what runs goes on without it");
  return {};
}

int serve_or_say_why(const ServeOptions& options) {
  auto paths = muster::cli::paths_here(options.state_folder);
  const Result<void> served = paths ? serve(*paths, options) : Result<void>(paths.error());
  if (served) return 0;
  std::cerr << "muster: " << served.error().to_string() << "\n";
  return served.error().code == muster::base::ErrorCode::kInvalid ? 2 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return muster::cli::run(arguments, {.serve = serve_or_say_why, .version = kVersion});
}
