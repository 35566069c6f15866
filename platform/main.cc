// The muster program, which names every store; parts.h names every engine. All other code uses their
// interfaces.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "cli/cli.h"
#include "cli/connection/server_start.h"
#include "config/paths.h"
#include "engine/host_facts.h"
#include "make_engine.h"
#include "parts.h"
#include "service/service.h"
#include "service/settings.h"
#include "store/maintenance.h"
#include "store/postgres_store.h"
#include "store/sqlite_store.h"

namespace {

using muster::base::Error;
using muster::base::ErrorCode;
using muster::base::Result;
using muster::base::UniqueFd;
using muster::cli::StoreReport;
using muster::config::Paths;
using muster::config::ServeOptions;

constexpr const char* kVersion = MUSTER_VERSION;

Result<muster::service::OpenedStore> open_store(const std::string& place,
                                                const muster::store::PasswordSource& password,
                                                const Paths& paths) {
  if (!muster::store::is_postgres_url(place)) {
    MUSTER_TRY(auto store, muster::store::SqliteStore::open(place));
    return muster::service::OpenedStore{.store = std::move(store)};
  }
  MUSTER_TRY(auto store, muster::store::PostgresStore::open(place, paths.state_folder, password));
  muster::store::Leadership* const leadership = store.get();
  return muster::service::OpenedStore{.store = std::move(store), .leadership = leadership};
}

int report(const Error& error) {
  std::cerr << "muster: " << error.to_string() << "\n";
  return error.code == ErrorCode::kInvalid ? 2 : 1;
}

/// Reports to the command that started this server that the socket is open, or why it could not be
/// opened. On a full disk, the log could not report it.
void report_to_starter(int fd, std::string_view word) {
  if (fd < 0) return;
  [[maybe_unused]] const auto written = muster::base::write_all(fd, word);
  ::close(fd);
}

/// Why a part of Muster is not in this program: "the slurm engine".
Error left_out(const std::string& part) {
  return {.code = ErrorCode::kUnavailable,
          .what = "this muster was built without " + part,
          .advice = "compile all of Muster, as with: make build"};
}

const muster::EnginePart* engine_named(std::string_view name) {
  for (const muster::EnginePart& engine : muster::parts().engines) {
    if (engine.name == name) return &engine;
  }
  return nullptr;
}

Result<std::unique_ptr<muster::engine::Engine>> make_engine(
    muster::base::EventLoop& loop, const std::filesystem::path& jobs_folder,
    const ServeOptions& options) {
  const auto* const engine = engine_named(options.engine);
  if (engine == nullptr) return left_out("the " + options.engine + " engine");
  return engine->make(loop, jobs_folder, options);
}

int serve(const ServeOptions& options, const muster::config::ReadAgain& read_again) {
  int starter = options.ready_fd;
  const auto accounts = muster::account_source(options);
  muster::service::Makers makers{.open_store = open_store,
                                 .make_engine = make_engine,
                                 .ready =
                                     [&starter] {
                                       report_to_starter(std::exchange(starter, -1),
                                                         muster::cli::kServerIsReady);
                                     },
                                 .make_role_sign = muster::parts().make_role_sign,
                                 .site = {.user = muster::engine::user_name(),
                                          .programs = muster::programs_folder(),
                                          .rank_agent = muster::shim_path(),
                                          .remote_shell = muster::remote_shell_path()},
                                 .version = kVersion};
  if (!accounts) makers.no_accounts = accounts.error();
  makers.site.runs_as_accounts = accounts && accounts->is_root;
  if (accounts) {
    makers.site.account_faults = [uid = ::geteuid()](const std::string& account) {
      return muster::engine::account_faults(account, uid);
    };
  }
  const Result<void> served = muster::service::serve(options, read_again, makers);
  if (served) return 0;
  const int code = report(served.error());
  report_to_starter(starter, muster::cli::server_refusal(served.error()));
  return code;
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
                     {"audit_records", summary.audit_records},
                     {"set_aside", summary.set_aside}}};
}

Result<std::string> store_of(const ServeOptions& options) {
  MUSTER_TRY(const Paths paths, muster::config::paths_here(options.state_folder));
  return muster::service::store_place(options, paths);
}

Result<StoreReport> backup_store(const ServeOptions& options, const std::string& file) {
  MUSTER_TRY(const std::string store, store_of(options));
  MUSTER_TRY(const auto summary, muster::store::backup_store(store, file));
  return report_of(summary);
}

/// Takes the locks of a server, so that none can run meanwhile.
Result<UniqueFd> keep_servers_out(const ServeOptions& options) {
  MUSTER_TRY(const Paths paths, muster::config::paths_here(options.state_folder));
  MUSTER_CHECK(muster::config::make_folders(paths));
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

StoreReport report_of(const muster::store::StoreCheck& check) {
  StoreReport report = report_of(check.summary);
  report.faults = check.faults;
  report.set_aside = check.set_aside;
  return report;
}

Result<StoreReport> check_store(const ServeOptions& options) {
  MUSTER_TRY(const std::string store, store_of(options));
  MUSTER_TRY(const auto check, muster::store::check_store(store));
  return report_of(check);
}

Result<StoreReport> set_record_aside(const ServeOptions& options, const std::string& name) {
  MUSTER_TRY(const UniqueFd lock, keep_servers_out(options));
  MUSTER_TRY(const std::string store, store_of(options));
  const muster::base::SystemClock clock;
  MUSTER_TRY(const auto check, muster::store::set_aside_record(store, name, clock.now()));
  return report_of(check);
}

muster::job::Diagnosis examine_one(const std::string& name, const muster::cli::DoctorInput& input) {
  using muster::job::Finding;
  if (const auto* const engine = engine_named(name)) return engine->examine(input);
  const Error error = left_out("the " + name + " engine");
  return {.engine = name,
          .findings = {{"this program", Finding::Verdict::kFails, error.what, error.advice}}};
}

/// Concurrently, because each check mostly waits for other programs.
std::vector<muster::job::Diagnosis> examine(const muster::cli::DoctorInput& input) {
  std::vector<muster::job::Diagnosis> found(input.engines.size());
  std::vector<std::thread> looking;
  for (size_t i = 0; i < input.engines.size(); ++i) {
    looking.emplace_back([&, i] { found[i] = examine_one(input.engines[i], input); });
  }
  for (std::thread& each : looking) each.join();
  return found;
}

Result<muster::cli::ForeignJobs> read_foreign(
    const std::vector<muster::config::YamlValue>& documents, const std::string& source,
    const muster::cli::ForeignOptions& options) {
  const auto read = muster::parts().read_foreign;
  if (read == nullptr) return left_out("job files of Kubernetes");
  return read(documents, source, options);
}

/// The command lines of other products are this program under other names: the program's name becomes
/// the first word.
constexpr std::string_view kDialects[] = {"gradient", "runai"};

bool is_dialect(std::string_view word) {
  return std::find(std::begin(kDialects), std::end(kDialects), word) != std::end(kDialects);
}

std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename() : "";
  if (is_dialect(name)) words.insert(words.begin(), name);
  return words;
}

/// The commands of a dialect follow its name.
int run(std::vector<std::string> words, const muster::cli::Hooks& hooks) {
  if (words.empty() || !is_dialect(words.front())) return muster::cli::run(words, hooks);
  const std::string name = words.front();
  words.erase(words.begin());
  for (const muster::DialectPart& dialect : muster::parts().dialects) {
    if (dialect.name == name) return dialect.run(words, hooks);
  }
  return report(left_out("the commands of " + name));
}

}  // namespace

int main(int argc, char** argv) {
  muster::base::open_standard_streams();
  return run(words_of(argc, argv), {.serve = serve,
                                    .version = kVersion,
                                    .backup_store = backup_store,
                                    .restore_store = restore_store,
                                    .check_store = check_store,
                                    .set_record_aside = set_record_aside,
                                    .examine = examine,
                                    .read_foreign = read_foreign});
}
