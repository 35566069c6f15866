#include "service/settings.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/files.h"
#include "config/paths.h"
#include "config/server_config.h"
#include "service/secret_key.h"
#include "store/postgres_store.h"

namespace muster::service {

namespace {

schedule::Packing packing_of(config::Packing setting) {
  switch (setting) {
    case config::Packing::kFragmentation:
      return schedule::Packing::kFragmentation;
    case config::Packing::kPack:
      return schedule::Packing::kPack;
    case config::Packing::kSpread:
      return schedule::Packing::kSpread;
  }
  return {};
}

using base::Error;
using base::ErrorCode;
using base::Result;

std::chrono::seconds whole_seconds(std::chrono::milliseconds time) {
  return std::chrono::ceil<std::chrono::seconds>(time);
}

/// The first line of the file, which is the password.
Result<std::string> password_in(const std::filesystem::path& file) {
  MUSTER_TRY(std::string password, read_key_file(file, kAllButOwner));
  password.resize(std::min(password.size(), password.find_first_of("\r\n")));
  if (!password.empty()) return password;
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + file.string() + "' has no password in its first line"};
}

}  // namespace

http::Limits http_limits(const config::ServeOptions& options) {
  http::Limits limits;
  limits.body_bytes = static_cast<size_t>(options.body_bytes);
  limits.connections = static_cast<size_t>(options.connections);
  limits.connections_of_address = static_cast<size_t>(options.connections_of_address);
  limits.request_timeout = whole_seconds(options.request_timeout);
  limits.write_timeout = whole_seconds(options.write_timeout);
  return limits;
}

server::AppOptions app_options(const config::ServeOptions& options, const config::Paths& paths,
                               const std::string& version) {
  server::AppOptions result;
  result.version = version;
  result.state_folder = paths.state_folder.string();
  result.config_changed = [stamp = options.config] { return config::has_changed(stamp); };
  result.settings = config::settings_of_variables(options);
  result.engine = options.engine;
  result.idle_exit = options.idle_exit;
  result.request_rate = options.request_rate;
  result.request_burst = options.request_burst;
  result.failed_logins.free_tries = options.failed_logins;
  result.failed_logins.window = whole_seconds(options.failed_login_window);
  result.failed_logins.longest = whole_seconds(options.failed_login_wait);
  result.session_lifetime = whole_seconds(options.session_lifetime);
  result.log_requests = options.log_requests;
  result.machine_types = job::machine_types_with(options.machine_types);
  return result;
}

Result<NotifySettings> notify_settings(const config::ServeOptions& options) {
  MUSTER_TRY(notify::AddressRules rules,
             notify::AddressRules::of(options.notify_allow, options.notify_allow_http));
  return NotifySettings{.rules = std::move(rules),
                        .schedule = {.first = options.notify_first_retry,
                                     .longest = options.notify_longest_pause,
                                     .give_up_after = options.notify_give_up_after},
                        .command = options.notify_command};
}

control::SeparationGaps separation_gaps(const config::ServeOptions& options, bool tasks_are_root) {
  const bool is_team = !options.listen.empty() && options.engine == "process";
  if (!is_team || options.trust_each_other) return {};
  return {.is_root = tasks_are_root,
          .shares_network = options.task_network == config::TaskNetwork::kShared};
}

control::RetentionRules retention_rules(const config::ServeOptions& options) {
  return {.keep_for = options.keep_jobs_for,
          .keep_jobs = options.keep_jobs,
          .keep_bytes = options.keep_bytes};
}

schedule::Options scheduler_options(const config::ServeOptions& options) {
  return {.packing = packing_of(options.packing),
          .stale_grace = options.stale_grace,
          .decay = options.decay,
          .patience = options.patience,
          .forbearance = options.forbearance};
}

Result<std::string> store_place(const config::ServeOptions& options, const config::Paths& paths) {
  if (options.store.empty()) return paths.database().string();
  if (!store::is_postgres_url(options.store) || !options.store_password_file) return options.store;
  MUSTER_TRY(const std::string password, password_in(*options.store_password_file));
  const char* const joint = options.store.find('?') == std::string::npos ? "?" : "&";
  return options.store + joint + "password=" + http::url_encoded(password);
}

store::PasswordSource store_password(const config::ServeOptions& options) {
  if (!options.store_password_file) return {};
  const std::filesystem::path file = *options.store_password_file;
  return {.file = file.string(), .read = [file] { return password_in(file); }};
}

base::Result<void> refuse_emptied_database(const std::string& place,
                                           const std::filesystem::path& trace) {
  std::error_code failed;
  const bool is_empty =
      !store::is_postgres_url(place) && std::filesystem::file_size(place, failed) == 0 && !failed;
  if (!is_empty || !std::filesystem::exists(trace, failed)) return {};
  return Error{.code = ErrorCode::kConflict,
               .what = "the database '" + place +
                       "' is empty (0 bytes), although a server has "
                       "used this state folder before: its content is lost",
               .advice =
                   "put the last backup in its place with `muster store restore FILE`, or "
                   "remove the file to begin with an empty database"};
}

std::string own_address(const config::ServeOptions& options, const std::string& host_name,
                        const std::string& listening, const config::Paths& paths) {
  if (!options.advertise.empty()) return options.advertise;
  if (listening.empty()) return host_name + ":" + paths.socket.string();
  const bool is_anywhere = is_wildcard(host_of(listening));
  return is_anywhere ? host_name + listening.substr(listening.rfind(':')) : listening;
}

namespace {

std::string name_of_one(const job::Job& job) {
  return "'" + job.spec.name + "'";
}

bool runs(const job::Job& job) {
  return job.phase == job::Phase::kStarting || job.phase == job::Phase::kRunning;
}

Error runs_elsewhere(const std::vector<job::Job>& jobs, const std::string& there,
                     const std::string& engine) {
  const auto count = std::count_if(jobs.begin(), jobs.end(), runs);
  const job::Job& first = *std::find_if(jobs.begin(), jobs.end(), runs);
  const std::string others =
      count == 1 ? " runs" : " and " + std::to_string(count - 1) + " more run";
  return {.code = ErrorCode::kConflict,
          .what = "job " + name_of_one(first) + others + " on the engine '" + there +
                  "', and a server with the engine '" + engine + "' could not manage it",
          .advice =
              "first let a server with --engine " + there +
              " end these jobs; or choose another state folder for this server (MUSTER_STATE_DIR)"};
}

}  // namespace

Result<void> check_engine(const std::filesystem::path& jobs_folder, const std::string& engine,
                          store::Store& store) {
  const std::string there = config::recorded_engine(jobs_folder);
  if (there.empty() || there == engine) return {};
  MUSTER_TRY(const store::Contents contents, store.load());
  if (std::none_of(contents.jobs.begin(), contents.jobs.end(), runs)) return {};
  return runs_elsewhere(contents.jobs, there, engine);
}

Result<void> check_jobs_folder(const std::filesystem::path& jobs_folder,
                               const std::vector<const job::Job*>& running) {
  if (running.empty() || !config::recorded_engine(jobs_folder).empty()) return {};
  std::error_code ignored;
  const bool has_one = std::any_of(running.begin(), running.end(), [&](const job::Job* job) {
    return std::filesystem::exists(jobs_folder / job->id, ignored);
  });
  if (has_one) return {};
  const std::string first = "job " + name_of_one(*running.front());
  const bool alone = running.size() == 1;
  return Error{
      .code = ErrorCode::kConflict,
      .what = (alone ? first + " runs"
                     : first + " and " + std::to_string(running.size() - 1) + " more run") +
              ", but the folder of the jobs '" + jobs_folder.string() + "' has no trace of " +
              (alone ? "it" : "them"),
      .advice =
          "set jobs_dir to the folder in which running jobs were started, or choose their state "
          "folder; if that folder is lost, start the server once with --accept-lost-jobs, and "
          "these jobs count as lost"};
}

Result<void> note_engine(const std::filesystem::path& jobs_folder, const std::string& engine) {
  if (config::recorded_engine(jobs_folder) == engine) return {};
  return base::write_file(config::engine_record(jobs_folder), engine + "\n");
}

void forget_engine(const std::filesystem::path& jobs_folder) {
  std::error_code ignored;
  std::filesystem::remove(config::engine_record(jobs_folder), ignored);
}

namespace fs = std::filesystem;

base::Result<void> set_storage_aside(const fs::path& storage, const std::string& project,
                                     base::Time now) {
  std::error_code error;
  if (!fs::exists(storage / project, error)) return {};
  const fs::path aside = storage / ".removed";
  MUSTER_CHECK(base::make_private_folder(aside));
  // Nanoseconds: a project may be deleted several times a second.
  const std::string name = project + "-" + std::to_string(now.time_since_epoch().count());
  fs::rename(storage / project, aside / name, error);
  if (!error) return {};
  return base::system_error("cannot set the storage of project '" + project + "' aside",
                            error.value());
}

}  // namespace muster::service
