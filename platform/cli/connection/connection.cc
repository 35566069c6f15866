#include "cli/connection/connection.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>

#include "api/client.h"
#include "api/server_url.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/contexts.h"
#include "cli/connection/server_start.h"
#include "config/server_config.h"
#include "config/server_keys.h"
#include "job/array.h"
#include "sweep/sweep.h"

namespace muster::cli {

namespace {

std::string restart_advice(const api::ServerInfo& server) {
  return server.on_demand
             ? "  restart it: muster server --restart; jobs continue meanwhile\n"
             : "  restart it as it was started ('muster server --stop' stops it); jobs continue "
               "meanwhile\n";
}

void warn_of_other_version(const api::ServerInfo& server, const std::string& version,
                           bool is_shared) {
  std::cerr << "muster: warning: the server is version " << server.version << ", this is "
            << version << "\n";
  if (is_shared) return;
  std::cerr << restart_advice(server);
}

void warn_of_ignored_settings(const api::ServerInfo& server,
                              const std::vector<IgnoredSetting>& ignored) {
  if (server.config_changed) {
    std::cerr << "muster: warning: the server's configuration file has changed since the server "
                 "read it\n";
  }
  if (!server.need_restart.empty()) {
    std::cerr << "muster: warning: changed in the server's configuration, but without effect until "
                 "it is restarted: "
              << base::joined(server.need_restart) << "\n";
  }
  for (const IgnoredSetting& each : ignored) {
    std::cerr << "muster: warning: " << each.variable
              << (each.requested ? "=" + *each.requested + " has" : " has an invalid value and")
              << " no effect: the running server has "
              << (each.present.empty() ? "the default" : each.present) << "\n";
  }
  const bool helps = server.config_changed || !server.need_restart.empty() || !ignored.empty();
  if (helps) std::cerr << restart_advice(server) << std::flush;
}

base::Error runs_another_engine(const api::ServerInfo& server, const std::string& requested,
                                bool is_shared) {
  const std::string whose = is_shared ? "the server" : "the running server";
  return {.code = base::ErrorCode::kConflict,
          .what = server.engine.empty()
                      ? whose + " does not report its engine, but --engine " + requested + " asks"
                      : whose + " uses the engine '" + server.engine + "', not '" + requested + "'",
          .advice = is_shared
                        ? "omit --engine, or choose another server: --context NAME"
                        : "omit --engine; or run 'muster server --stop' when its jobs have ended, "
                          "and repeat this command; or use another state folder: MUSTER_STATE_DIR"};
}

}  // namespace

std::vector<IgnoredSetting> ignored_settings(const config::Environment& environment,
                                             const std::map<std::string, std::string>& of_server) {
  config::ServerSource source{.folder = "/"};
  for (const config::ServerKey& key : config::server_keys()) {
    const auto set = environment.find(key.variable);
    if (set != environment.end() && !set->second.empty() && of_server.contains(key.variable)) {
      source.settings.push_back({key.name, key.variable, set->second});
    }
  }
  config::ServeOptions options;
  const std::vector<base::Fault> faults = config::apply_settings(source, options);
  const auto requested = config::settings_of_variables(options);
  std::vector<IgnoredSetting> ignored;
  for (const config::ServerSetting& setting : source.settings) {
    const bool is_invalid =
        std::any_of(faults.begin(), faults.end(),
                    [&](const base::Fault& fault) { return fault.field == setting.named; });
    IgnoredSetting each{.variable = setting.named, .present = of_server.at(setting.named)};
    if (!is_invalid) each.requested = requested.at(setting.named);
    if (each.requested != each.present) ignored.push_back(std::move(each));
  }
  return ignored;
}

Result<Connection> Connection::open(const Context& context, const std::string& version,
                                    std::string project, std::string engine) {
  Connection connection;
  connection.engine_ = std::move(engine);
  connection.project_ = std::move(project);
  if (context.is_local()) {
    MUSTER_TRY(connection.paths_, config::paths_here());
    MUSTER_CHECK(check_socket_folder(connection.paths_));
  } else {
    MUSTER_TRY(connection.endpoint_, endpoint_of(context));
    connection.token_ = context.token;
  }
  connection.client_ = connection.second_client();
  MUSTER_TRY(const api::ServerInfo server,
             connection.call([](api::Client& client) { return client.info(); }));
  if (!connection.engine_.empty() && server.engine != connection.engine_) {
    return runs_another_engine(server, connection.engine_, connection.is_shared());
  }
  if (server.version != version) warn_of_other_version(server, version, connection.is_shared());
  if (!connection.is_shared()) {
    const auto environment = config::environment_of(base::current_environment());
    warn_of_ignored_settings(server, ignored_settings(environment, server.settings));
  }
  connection.server_ = server;
  return connection;
}

Result<void> Connection::reopen() {
  if (!is_shared()) MUSTER_CHECK(ensure_server(paths_, engine_));
  client_ = second_client();
  return {};
}

Result<bool> Connection::come_back(int wake_fd) {
  // The operators of a shared server restart it, or a standby takes over, within seconds.
  const int most_failures = is_shared() || is_restarted_by_others_ ? 15 : 5;
  if (failures_ >= most_failures) {
    return base::Error{.code = base::ErrorCode::kUnavailable,
                       .what = "the connection to the server was lost repeatedly",
                       .advice = "jobs continue; look for the cause in the server's log"};
  }
  // A server that dies repeatedly gets more time with each attempt.
  const auto now = std::chrono::steady_clock::now();
  if (!retry_at_) retry_at_ = now + std::chrono::milliseconds(100) * failures_;
  const auto rest = std::max(std::chrono::milliseconds(0),
                             std::chrono::ceil<std::chrono::milliseconds>(*retry_at_ - now));
  pollfd wake{.fd = wake_fd, .events = POLLIN, .revents = 0};  // poll() skips a negative one
  if (::poll(&wake, 1, static_cast<int>(rest.count())) > 0) return false;
  retry_at_.reset();
  ++failures_;
  auto opened = reopen();
  if (opened) return true;
  if (base::detail_of<config::StartedOtherwise>(opened.error()) == nullptr) return opened.error();
  is_restarted_by_others_ = true;
  client_ = second_client();
  return true;
}

Result<bool> Connection::come_back_after(const base::Error& error, int signals_fd) {
  if (base::detail_of<http::RequestLeft>(error) != nullptr) return false;
  if (error.code != base::ErrorCode::kUnavailable) return error;
  return come_back(signals_fd);
}

void Connection::set_project(const std::string& project) {
  project_ = project;
  client_->set_project(project);
}

void Connection::set_wake(http::Wake wake) {
  client_->set_wake(wake);
  wake_ = std::move(wake);
}

std::string Connection::url() const {
  return endpoint_ ? api::server_url(endpoint_->host, endpoint_->port) : "";
}

std::unique_ptr<api::Client> Connection::second_client() const {
  auto client = endpoint_ ? std::make_unique<api::Client>(*endpoint_, token_)
                          : std::make_unique<api::Client>(paths_.socket);
  client->set_project(project_);
  if (wake_.fd >= 0) client->set_wake(wake_);
  return client;
}

Result<http::TlsEndpoint> endpoint_of(const Context& context) {
  MUSTER_TRY(const api::ServerAddress address, api::parse_server_url(context.server));
  http::TlsEndpoint endpoint{.host = address.host,
                             .port = address.port,
                             .fingerprint = context.fingerprint,
                             .authorities = {}};
  if (context.ca_file.empty() || !context.fingerprint.empty()) return endpoint;
  auto authorities = base::read_file(context.ca_file);
  if (!authorities) {
    base::Error error = std::move(authorities).error();
    error.code = base::ErrorCode::kInvalid;  // kNotFound would mean that a job is missing
    error.advice = "this file contains the certificate authorities of context '" + context.name +
                   "'; log in with another file: muster login " + context.server + " --ca FILE";
    return error;
  }
  endpoint.authorities = *std::move(authorities);
  return endpoint;
}

Result<Connection> connect(const Hooks& hooks, const std::string& project) {
  MUSTER_TRY(const Context context, chosen_context(hooks.context));
  return Connection::open(context, hooks.version, project, hooks.engine);
}

bool is_for_kubernetes(const Hooks& hooks, const Caller& caller) {
  if (!hooks.engine.empty()) return hooks.engine == "kubernetes";
  const auto chosen = caller.environment.find("MUSTER_ENGINE");
  return chosen != caller.environment.end() && chosen->second == "kubernetes";
}

int for_each_name(const std::vector<std::string>& names,
                  const std::function<Result<void>(const std::string&)>& act) {
  int code = kExitDone;
  for (const std::string& name : names) {
    const auto done = act(name);
    if (done) continue;
    std::cerr << error_text(done.error()) << std::flush;
    if (code == kExitDone) code = exit_code_of(done.error());
  }
  return code;
}

int delete_each(const std::vector<std::string>& names, bool ignore_missing,
                const std::function<Result<void>(const std::string&)>& remove) {
  return for_each_name(names, [&](const std::string& name) -> Result<void> {
    auto removed = remove(name);
    const bool missing = !removed && removed.error().code == base::ErrorCode::kNotFound;
    if (missing && ignore_missing) return {};
    MUSTER_CHECK(std::move(removed));
    return show("deleted " + name + "\n");
  });
}

std::string names_of(const std::vector<job::Job>& jobs) {
  std::string text;
  for (const job::Job& job : jobs) text += job.spec.name + "\n";
  return text;
}

Result<void> show(std::string_view text) {
  const bool is_terminal = terminal_of(STDOUT_FILENO).is_terminal;
  auto written = is_terminal ? base::write_all(STDOUT_FILENO, safe_lines(text))
                             : base::write_all(STDOUT_FILENO, text);
  if (written) return {};
  base::Error error = std::move(written).error();
  // kUnavailable would mean that the server is unavailable.
  error.code = base::ErrorCode::kInternal;
  return error;
}

Result<void> show(Output output, std::string_view text, std::string_view json) {
  if (output == Output::kYaml) return show(json_to_yaml(json));
  if (output == Output::kJson) return show(std::string(json) + "\n");
  return show(text);
}

namespace {

/// The time between two lookups of the same members of arrays.
constexpr std::chrono::seconds kBetweenLookups{1};

base::UniqueFd new_timer() {
  return base::UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
}

/// `timer` becomes readable after `bound`.
void set_timer(const base::UniqueFd& timer, std::chrono::nanoseconds bound) {
  // A time of zero would disarm the timer.
  const auto time = std::max(bound, std::chrono::nanoseconds(1));
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
  const itimerspec spec{.it_interval = {},
                        .it_value = {.tv_sec = whole.count(), .tv_nsec = (time - whole).count()}};
  ::timerfd_settime(timer.get(), 0, &spec, nullptr);
}

bool has_fired(const base::UniqueFd& timer) {
  uint64_t count = 0;
  return timer && ::read(timer.get(), &count, sizeof count) > 0;
}

/// Whether this is a member of an array that has no job, either not yet or no longer.
bool is_jobless_member(const job::Job& job) {
  const auto& origin = job.origin;
  return origin && origin->kind == job::JobOrigin::Kind::kArray &&
         job.id == origin->id + "-" + std::to_string(origin->member);
}

/// Whether an array that has not ended has this member.
bool has_member(const job::Array& array, int index) {
  if (job::is_final(array.phase)) return false;
  // An array with a line for each member is sent without its lines.
  if (array.spec.array.indexes.empty()) return index < array.counts.all();
  const auto indexes = job::indexes_of(array.spec.array);
  return indexes && std::binary_search(indexes->begin(), indexes->end(), index);
}

class Watcher {
 public:
  Watcher(Connection& connection, const JobWatch& watch)
      : connection_(connection), watch_(watch), wake_fd_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (watch.bound) {
      timer_ = new_timer();
      set_timer(timer_, *watch.bound);
      look_out_for(timer_.get());
    }
    look_out_for(lookup_timer_.get());
    if (watch.interrupts != nullptr) look_out_for(watch.interrupts->fd());
  }

  Result<WatchEnd> run() {
    while (true) {
      const auto read = read_stream();
      if (end_) return *end_;
      if (fault_) return *fault_;
      due_.clear();  // the next stream begins with all jobs
      if (std::exchange(reads_anew_, false)) continue;
      if (!read && read.error().code != base::ErrorCode::kUnavailable) return read.error();
      while (true) {
        MUSTER_TRY(const bool is_back, connection_.come_back(wake_fd_.get()));
        if (is_back) break;
        if (!heed()) return *end_;
      }
      lookup_.reset();
    }
  }

 private:
  void look_out_for(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(wake_fd_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  Result<void> read_stream() {
    // All jobs are sent again; a job that was removed in between is missing among them.
    std::string place;
    seen_.clear();
    const api::Client::WatchHandlers handlers{
        .on_job =
            [this](const job::Job& job) {
              return report(name_of(job.spec.project, job.spec.name), &job);
            },
        .on_array =
            [this](const job::Array& array) {
              return report_object(name_of(array.spec.project, array.spec.name), array,
                                   watch_.on_array) &&
                     follow_members_of(array);
            },
        .on_sweep =
            [this](const sweep::SweepSummary& sweep) {
              return report_object(name_of(sweep.project, sweep.name), sweep, watch_.on_sweep);
            },
        .on_removed = [this](const api::RemovedJob& gone) { return report_removed(gone); },
        .on_ready = [this] { return report_missing(); },
        .on_reset =
            [this] {
              seen_.clear();
              return true;
            }};
    const http::Wake wake{.fd = wake_fd_.get(), .on_wake = [this] { return heed(); }};
    // The server filters by one name; of several jobs all jobs of the project are read.
    api::Client::WatchQuery query;
    if (!watch_.project.empty()) query.project = watch_.project;
    if (filters_by_name()) {
      const auto member = jobless_.begin();
      query.name = member == jobless_.end() ? *watch_.names.begin() : member->second.name;
    }
    return connection_.client().watch_jobs(query, place, handlers, wake);
  }

  /// As in JobWatch::names.
  std::string name_of(const std::string& project, const std::string& name) const {
    return watch_.project.empty() ? project + "/" + name : name;
  }

  /// The project and the name of an entry of JobWatch::names.
  std::pair<std::string, std::string> place_of(const std::string& name) const {
    if (!watch_.project.empty()) return {watch_.project, name};
    const size_t slash = std::min(name.find('/'), name.size() - 1);
    return {name.substr(0, slash), name.substr(slash + 1)};
  }

  bool filters_by_name() const { return !watch_.project.empty() && watch_.names.size() == 1; }

  bool report(const std::string& name, const job::Job* job) {
    connection_.is_well();
    if (!watch_.names.contains(name)) return true;
    seen_.insert(name);
    jobless_.erase(name);
    due_.erase(name);
    return goes_on(watch_.on_job(name, job));
  }

  bool report_removed(const api::RemovedJob& gone) {
    connection_.is_well();
    const std::string name = name_of(gone.project, gone.name);
    if (watch_.names.contains(name) && !report_absent(name, true)) return false;
    return look_up_members([&](const job::JobOrigin& origin) { return origin.id == gone.id; });
  }

  // The stream reports a member of an array only while it is a job. A member that is not a job yet
  // may end with its array without ever becoming one, so its array is followed, too.

  /// The stream has no job of this name, but it may be the name of a member. `was_removed`: the job was
  /// removed, so a job that now has this name is a different job.
  bool report_absent(const std::string& name, bool was_removed = false) {
    if (!job::member_of(place_of(name).second)) return report(name, nullptr);
    due_[name] = due_[name] || was_removed;
    return look_up_soon();
  }

  bool look_up_soon() {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_lookup_) return look_up();
    set_timer(lookup_timer_, next_lookup_ - now);
    return true;
  }

  /// Asks the server for the members in due_.
  bool look_up() {
    while (!due_.empty()) {
      const auto [name, was_removed] = *due_.begin();
      const auto more = report_member(name, was_removed);
      if (!more) return put_off(more.error());
      due_.erase(name);
      if (!*more) return false;
    }
    return true;
  }

  /// The server is asked again later if it may answer then. If the stream breaks, too, the next one
  /// begins with all jobs.
  bool put_off(const base::Error& error) {
    const bool may_answer =
        error.code == base::ErrorCode::kUnavailable || error.code == base::ErrorCode::kExhausted;
    if (!may_answer) {
      fault_ = error;
      return false;
    }
    lookup_.reset();
    put_off_lookups();
    return look_up_soon();
  }

  void put_off_lookups() { next_lookup_ = std::chrono::steady_clock::now() + kBetweenLookups; }

  /// Whether to go on. Errors: those of the server, but not that the member does not exist.
  Result<bool> report_member(const std::string& name, bool was_removed) {
    const auto& [project, job_name] = place_of(name);
    if (!lookup_) lookup_ = connection_.second_client();
    lookup_->set_project(project);
    const auto job = lookup_->get(job_name);
    if (!job && job.error().code != base::ErrorCode::kNotFound) return job.error();
    if (!job) return report_unknown(name);
    if (was_removed && !is_jobless_member(*job)) return report(name, nullptr);
    if (!is_jobless_member(*job) || job::is_final(job->phase)) return report_found(name, *job);
    return goes_on(watch_.on_job(name, &*job)) && follow_member(name, *job->origin);
  }

  /// While the job of a member is being stored, the server shows neither the job nor the member.
  Result<bool> report_unknown(const std::string& name) {
    const auto member = job::member_of(place_of(name).second);
    const auto array = lookup_->array(member->array);
    if (!array && array.error().code != base::ErrorCode::kNotFound) return array.error();
    if (!array || !has_member(*array, member->index)) return report(name, nullptr);
    return follow_member(name, {.kind = job::JobOrigin::Kind::kArray,
                                .name = array->spec.name,
                                .id = array->id,
                                .member = member->index});
  }

  bool follow_member(const std::string& name, const job::JobOrigin& origin) {
    seen_.insert(name);
    const bool is_new = jobless_.insert_or_assign(name, origin).second;
    return !is_new || read_anew();
  }

  /// The member has become a job, or has ended.
  bool report_found(const std::string& name, const job::Job& job) {
    const bool was_jobless = jobless_.contains(name);
    return report(name, &job) && (!was_jobless || read_anew());
  }

  /// With a single name, the server filters by the name of the job or of its array.
  bool read_anew() {
    reads_anew_ = filters_by_name();
    return !reads_anew_;
  }

  bool follow_members_of(const job::Array& array) {
    // With several names, the stream contains the jobs of all members, but not the members that were
    // stopped before they became jobs.
    const bool has_stopped =
        std::exchange(stopped_[array.id], array.counts.stopped) != array.counts.stopped;
    return (!filters_by_name() && !has_stopped && !job::is_final(array.phase)) ||
           look_up_members([&](const job::JobOrigin& origin) { return origin.id == array.id; });
  }

  bool look_up_members(const std::function<bool(const job::JobOrigin&)>& are_meant) {
    bool some = false;
    for (const auto& [name, origin] : jobless_) {
      if (!are_meant(origin)) continue;
      due_.try_emplace(name, false);
      some = true;
    }
    if (!some) return true;
    // An array of thousands of members changes many times a second.
    const bool is_time = std::chrono::steady_clock::now() >= next_lookup_;
    if (is_time) put_off_lookups();
    return is_time ? look_up() : look_up_soon();
  }

  template <class Object>
  bool report_object(const std::string& name, const Object& object,
                     const std::function<bool(const std::string&, const Object&)>& on_object) {
    connection_.is_well();
    if (!on_object || !watch_.names.contains(name)) return true;
    seen_.insert(name);
    return goes_on(on_object(name, object));
  }

  bool report_missing() {
    return std::all_of(watch_.names.begin(), watch_.names.end(), [this](const std::string& name) {
      return seen_.contains(name) || report_absent(name);
    });
  }

  bool goes_on(bool more) {
    if (!more) end_ = WatchEnd::kEnough;
    return more;
  }

  bool heed() {
    if (watch_.interrupts != nullptr && watch_.interrupts->take()) end_ = WatchEnd::kInterrupted;
    if (has_fired(timer_)) end_ = WatchEnd::kBoundReached;
    if (has_fired(lookup_timer_) && !end_ && !due_.empty()) {
      put_off_lookups();
      return look_up();
    }
    return !end_;
  }

  Connection& connection_;
  const JobWatch& watch_;
  base::UniqueFd timer_;
  base::UniqueFd lookup_timer_ = new_timer();
  base::UniqueFd wake_fd_;
  std::set<std::string> seen_;
  std::unique_ptr<api::Client> lookup_;  ///< reads members while the stream is open
  std::map<std::string, bool> due_;      ///< members to look up, and whether their job was removed
  std::chrono::steady_clock::time_point next_lookup_;
  std::map<std::string, job::JobOrigin> jobless_;  ///< names of members that are not jobs yet
  std::map<std::string, int> stopped_;             ///< the members of each array, by its id
  bool reads_anew_ = false;           ///< the stream ended to be read with another filter
  std::optional<base::Error> fault_;  ///< the server refused a lookup
  std::optional<WatchEnd> end_;
};

}  // namespace

Result<WatchEnd> watch_jobs(Connection& connection, const JobWatch& watch) {
  return Watcher(connection, watch).run();
}

}  // namespace muster::cli
