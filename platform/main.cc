// The muster program, and the one place that names every engine and every store: everything else
// knows only the interfaces.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/paths.h"
#include "engine/container/container_engine.h"
#include "engine/container/host_texts.h"
#include "engine/process/declared_gpus.h"
#include "engine/process/host_facts.h"
#include "engine/process/process_engine.h"
#include "service/service.h"
#include "service/settings.h"
#include "store/maintenance.h"
#include "store/postgres_store.h"
#include "store/sqlite_store.h"
#include "workspace/tree_store.h"

namespace {

using muster::base::Error;
using muster::base::ErrorCode;
using muster::base::Result;
using muster::base::UniqueFd;
using muster::cli::Paths;
using muster::cli::ServeOptions;
using muster::cli::StoreReport;

constexpr const char* kVersion = MUSTER_VERSION;

/// The shim stands beside this program where it was built, and in ../libexec where it is installed.
std::filesystem::path shim_path() {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path installed = folder.parent_path() / "libexec/muster/muster-shim";
  return std::filesystem::exists(installed) ? installed : folder / "muster-shim";
}

/// Muster's own remote shell; empty: it was left out.
std::string remote_shell_path() {
  const std::filesystem::path path = shim_path().parent_path() / "muster-rsh";
  return std::filesystem::exists(path) ? path.string() : "";
}

Result<muster::service::OpenedStore> open_store(const std::string& place, const Paths& paths) {
  if (!muster::store::is_postgres_url(place)) {
    MUSTER_TRY(auto store, muster::store::SqliteStore::open(place));
    return muster::service::OpenedStore{.store = std::move(store)};
  }
  MUSTER_TRY(auto store, muster::store::PostgresStore::open(place, paths.state_folder));
  muster::store::Leadership* const leadership = store.get();
  return muster::service::OpenedStore{.store = std::move(store), .leadership = leadership};
}

/// What the jobs of a server that is shared must not get at: with the unix socket, the key or the
/// database they could do all that the server can. Who has a server alone could do that anyway, and
/// their jobs may well submit others.
Result<std::vector<std::filesystem::path>> hidden_from_jobs(
    const std::filesystem::path& jobs_folder, const ServeOptions& options) {
  if (options.listen.empty()) return std::vector<std::filesystem::path>();
  MUSTER_TRY(const Paths paths, muster::cli::paths_here(options.state_folder));
  std::vector<std::filesystem::path> hidden{paths.socket.parent_path(), paths.state_folder,
                                            jobs_folder};
  for (const auto& file : {options.secret_key_file, options.tls_key, options.store_password_file}) {
    if (file) hidden.push_back(*file);
  }
  if (!options.store.empty() && !muster::store::is_postgres_url(options.store)) {
    for (const char* ending : {"", "-wal", "-shm"}) hidden.emplace_back(options.store + ending);
  }
  return hidden;
}

auto tree_unpacker(const std::filesystem::path& jobs_folder) {
  return [trees = muster::workspace::TreeStore(muster::cli::trees_folder(jobs_folder))](
             const std::string& project, const std::string& tree,
             const std::filesystem::path& folder) { return trees.unpack(project, tree, folder); };
}

Result<std::vector<muster::engine::ContainerHostOptions>> container_hosts(
    const ServeOptions& options) {
  muster::engine::Surroundings here = muster::engine::surroundings_here();
  if (options.docker_cert_path) {
    here.variable = [variable = here.variable,
                     folder = options.docker_cert_path->string()](const std::string& name) {
      return name == "DOCKER_CERT_PATH" ? folder : variable(name);
    };
  }
  const muster::engine::HostTexts texts{
      .endpoints = options.container_hosts,
      .addresses = options.host_addresses,
      .gpus = options.host_gpus,
      .certificates = options.docker_cert_path.value_or(std::filesystem::path()),
      .own_name = muster::engine::host_name(),
      .own_gpus = options.declared_gpus};
  MUSTER_TRY(auto hosts, muster::engine::read_hosts(texts, here));
  for (muster::engine::ContainerHostOptions& host : hosts) {
    host.pool = options.node_pool;
    host.task_slots = options.task_slots;
    host.topology = options.topology;
  }
  return hosts;
}

Result<std::unique_ptr<muster::engine::Engine>> make_container_engine(
    muster::base::EventLoop& loop, const std::filesystem::path& jobs_folder,
    const ServeOptions& options) {
  muster::engine::ContainerEngineOptions how{.folder = jobs_folder,
                                             .programs = shim_path().parent_path(),
                                             .log_quota = static_cast<uint64_t>(options.log_quota),
                                             .unpack_tree = tree_unpacker(jobs_folder)};
  MUSTER_TRY(how.hosts, container_hosts(options));
  MUSTER_TRY(how.owner, muster::engine::owner_of(jobs_folder));
  MUSTER_TRY(how.hidden, hidden_from_jobs(jobs_folder, options));
  if (!how.hidden.empty()) {
    for (auto& way : muster::engine::ways_in(how.hosts)) how.hidden.push_back(std::move(way));
  }
  MUSTER_TRY(auto engine, muster::engine::ContainerEngine::open(loop, std::move(how)));
  return std::unique_ptr<muster::engine::Engine>(std::move(engine));
}

Result<std::unique_ptr<muster::engine::Engine>> make_engine(
    muster::base::EventLoop& loop, const std::filesystem::path& jobs_folder,
    const ServeOptions& options) {
  if (options.engine == "container") return make_container_engine(loop, jobs_folder, options);
  muster::engine::ProcessEngineOptions how{.folder = jobs_folder,
                                           .shim = shim_path(),
                                           .task_slots = options.task_slots,
                                           .node_pool = options.node_pool,
                                           .topology = options.topology};
  how.log_quota = static_cast<uint64_t>(options.log_quota);
  MUSTER_TRY(how.hidden, hidden_from_jobs(jobs_folder, options));
  how.storage_folder = options.storage_folder.value_or(muster::cli::storage_folder(jobs_folder));
  how.unpack_tree = tree_unpacker(jobs_folder);
  if (!options.declared_gpus.empty()) {
    MUSTER_TRY(how.declared_gpus, muster::engine::parse_declared_gpus(options.declared_gpus));
  }
  return std::make_unique<muster::engine::ProcessEngine>(loop, std::move(how));
}

int tell(const Error& error) {
  std::cerr << "muster: " << error.to_string() << "\n";
  return error.code == ErrorCode::kInvalid ? 2 : 1;
}

/// Tells whoever started this server that its socket is open.
void tell_ready(int fd) {
  if (fd < 0) return;
  [[maybe_unused]] const auto told = muster::base::write_all(fd, "r");
  ::close(fd);
}

int serve(const ServeOptions& options, const muster::cli::Hooks::ReadAgain& read_again) {
  const muster::service::Makers makers{.open_store = open_store,
                                       .make_engine = make_engine,
                                       .ready = [&options] { tell_ready(options.ready_fd); },
                                       .site = {.user = muster::engine::user_name(),
                                                .rank_agent = shim_path(),
                                                .remote_shell = remote_shell_path()},
                                       .version = kVersion};
  const Result<void> served = muster::service::serve(options, read_again, makers);
  return served ? 0 : tell(served.error());
}

StoreReport report_of(const muster::store::StoreSummary& summary) {
  return {.schema_version = summary.schema_version,
          .counts = {{"jobs", summary.jobs},
                     {"projects", summary.projects},
                     {"users", summary.users},
                     {"tokens", summary.tokens},
                     {"secrets", summary.secrets},
                     {"subscriptions", summary.subscriptions},
                     {"deliveries", summary.deliveries},
                     {"audit_records", summary.audit_records}}};
}

Result<std::string> store_of(const ServeOptions& options) {
  MUSTER_TRY(const Paths paths, muster::cli::paths_here(options.state_folder));
  return muster::service::store_place(options, paths);
}

Result<StoreReport> backup_store(const ServeOptions& options, const std::string& file) {
  MUSTER_TRY(const std::string store, store_of(options));
  MUSTER_TRY(const auto summary, muster::store::backup_store(store, file));
  return report_of(summary);
}

/// Holds what a server would hold, so that none runs meanwhile.
Result<UniqueFd> keep_servers_out(const ServeOptions& options) {
  MUSTER_TRY(const Paths paths, muster::cli::paths_here(options.state_folder));
  MUSTER_CHECK(muster::cli::make_folders(paths));
  auto lock = muster::base::lock_file(paths.server_lock());
  if (lock || lock.error().code != ErrorCode::kConflict) return lock;
  return Error{.code = ErrorCode::kConflict,
               .what = "a server uses '" + paths.state_folder.string() + "'",
               .advice = "end it first: muster server --stop"};
}

Result<StoreReport> restore_store(const ServeOptions& options, const std::string& file) {
  MUSTER_TRY(const UniqueFd lock, keep_servers_out(options));
  MUSTER_TRY(const std::string store, store_of(options));
  MUSTER_TRY(const auto summary, muster::store::restore_store(file, store));
  return report_of(summary);
}

Result<StoreReport> check_store(const ServeOptions& options) {
  MUSTER_TRY(const std::string store, store_of(options));
  MUSTER_TRY(const auto check, muster::store::check_store(store));
  StoreReport report = report_of(check.summary);
  report.faults = check.faults;
  return report;
}

/// `gradient` and `runai` are this program under another name: theirs is the first word then.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename() : "";
  if (name == "gradient" || name == "runai") words.insert(words.begin(), name);
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments = words_of(argc, argv);
  return muster::cli::run(arguments, {.serve = serve,
                                      .version = kVersion,
                                      .backup_store = backup_store,
                                      .restore_store = restore_store,
                                      .check_store = check_store});
}
