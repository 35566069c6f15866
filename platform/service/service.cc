#include "service/service.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "config/server_config.h"
#include "http/server.h"
#include "schedule/scheduler.h"
#include "server/app.h"
#include "service/leader.h"
#include "service/lifecycle.h"
#include "service/page_port.h"
#include "service/secret_key.h"
#include "service/settings.h"

namespace muster::service {

namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

/// How often a waiting server tries to take the lead, and a leader checks that it still leads.
constexpr std::chrono::milliseconds kTryPause{500};
/// How often the files of the certificate are compared with those that were read.
constexpr std::chrono::minutes kCertificatePause{1};
/// How long requests may take when the server stops.
constexpr std::chrono::seconds kFarewell{5};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

class Service {
 public:
  Service(const config::ServeOptions& options, const config::ReadAgain& read_again,
          const Makers& makers)
      : options_(options), read_again_(read_again), makers_(makers) {}

  Result<void> run() {
    const base::UniqueFd signals = watch_signals();
    notify_socket_ = take_notify_socket();
    base::set_log_format(options_.log_format);
    MUSTER_CHECK(open());
    const auto signal_watch =
        loop_.when_readable(signals.get(), [this, &signals] { take_signal(signals.get()); });
    makers_.ready();
    notify(notify_socket_, std::string("READY=1\nSTATUS=") + (leader_ ? "leads" : "waits"));
    loop_.run();
    server_->close();
    if (leader_ && leader_->idle()) forget_engine(jobs_folder_);
    base::log_info("stops; running jobs continue");
    return outcome_;
  }

 private:
  // The steps that may fail before the server serves requests.
  Result<void> open() {
    MUSTER_TRY(paths_, config::paths_here(options_.state_folder));
    MUSTER_CHECK(config::make_folders(paths_));
    // Before the lock: a server that is refused must not keep out the one that belongs here.
    MUSTER_CHECK(check_origin());
    MUSTER_CHECK(take_lock());
    MUSTER_CHECK(check_origin());
    jobs_folder_ = options_.jobs_folder.value_or(paths_.state_folder / "jobs");
    MUSTER_CHECK(base::make_private_folder(jobs_folder_));
    MUSTER_TRY(const access::SecretBox::Key key, find_secret_key(key_places(), random_));
    box_ = std::make_unique<access::SecretBox>(key);
    MUSTER_TRY(const std::string place, store_place(options_, paths_));
    MUSTER_CHECK(refuse_emptied_database(place, leader_lock()));
    // It may contain a password, and processes of jobs could read it in the server's environment.
    ::unsetenv("MUSTER_STORE");
    MUSTER_TRY(store_, makers_.open_store(place, store_password(options_), paths_));
    MUSTER_CHECK(listen());
    MUSTER_CHECK(begin());
    // Not before: a server that failed to start must leave the folder to the one before it.
    return config::note_origin(paths_.server_origin(), origin());
  }

  /// Leads, or waits for the lead. Starts and answers nothing before the loop runs.
  Result<void> begin() {
    if (store_.leadership == nullptr) return lead();
    if (makers_.make_role_sign) {
      MUSTER_TRY(role_sign_, makers_.make_role_sign(loop_));
    }
    try_to_lead();
    return outcome_;
  }

  config::ServerOrigin origin() const {
    return config::origin_of(options_, !notify_socket_.empty());
  }

  Result<void> check_origin() const {
    if (options_.takes_over) return {};
    const config::ServerOrigin recorded = config::recorded_origin(paths_.server_origin());
    return config::check_origin(paths_.state_folder, recorded,
                                config::origin_there(options_, !notify_socket_.empty(), recorded));
  }

  Result<void> take_lock() {
    auto lock = base::lock_file(paths_.server_lock());
    if (!lock && lock.error().code == ErrorCode::kConflict) {
      return Error{
          .code = ErrorCode::kConflict,
          .what = "another server uses '" + paths_.state_folder.string() + "'",
          .advice = "muster server --stop ends it; MUSTER_STATE_DIR chooses another folder"};
    }
    if (!lock) {
      Error error = std::move(lock).error();
      if (error.advice.empty()) {
        error.advice =
            "the server writes to its state folder: make the folder writable, or choose another "
            "folder (MUSTER_STATE_DIR)";
      }
      return error;
    }
    lock_ = *std::move(lock);
    return {};
  }

  /// Created once the first server of this folder has opened its database; never removed.
  std::filesystem::path leader_lock() const { return jobs_folder_ / "leader.lock"; }

  SecretKeyPlaces key_places() const {
    return {.variable = take_secret_key_variable(),
            .named_file = options_.secret_key_file,
            .own_file = paths_.secret_key()};
  }

  TlsFiles tls_files() const {
    return {.given_certificate = options_.tls_certificate,
            .given_key = options_.tls_key,
            .own_certificate = paths_.certificate(),
            .own_key = paths_.certificate_key(),
            .names = certificate_names(host_name(), {options_.listen, options_.advertise},
                                       options_.tls_names)};
  }

  bool tasks_are_root() const { return ::geteuid() == 0 && makers_.no_accounts; }

  control::SeparationGaps gaps() const { return separation_gaps(options_, tasks_are_root()); }

  /// The ids of tasks, and the gaps in their isolation.
  void warn_of_accounts() const {
    if (!makers_.no_accounts) {
      return base::log_info(::geteuid() == 0
                                ? "tasks run under the Unix account of their user, or else under "
                                  "ids of their own (tasks.subids)"
                                : "tasks run under ids of their user (/etc/subuid)");
    }
    const base::Error& why = *makers_.no_accounts;
    base::log_warning("all tasks run under the account of the server: " + why.what,
                      {{"advice", why.advice}});
    if (tasks_are_root()) {
      base::log_warning(
          "the tasks are root: a fault of the kernel or of a device lets them leave their "
          "sandboxes");
    }
  }

  /// The gaps that no sandbox closes.
  void warn_of_gaps() const {
    if (options_.engine != "process") {
      if (::geteuid() == 0) {
        base::log_warning(
            "the server runs as root: jobs can leave their sandboxes and reach its files");
      }
      return;
    }
    warn_of_accounts();
    if (options_.task_network == config::TaskNetwork::kShared) {
      base::log_warning("jobs share the machine's network: they reach each other's ports");
    }
    if (gaps().any()) {
      base::log_warning(
          "runs jobs of one project at a time, because it cannot isolate projects from each other; "
          "trust_each_other: true allows several");
    }
  }

  Result<void> listen() {
    server_ =
        std::make_unique<http::Server>(loop_, door_.handler(), http_limits(options_), door_.gate());
    std::string listening;
    if (!options_.listen.empty()) {
      warn_of_gaps();
      const CertificateWatch::Stamps stamps = CertificateWatch::stamps_of(tls_files());
      MUSTER_TRY(const http::TlsIdentity own, find_tls_identity(tls_files(), clock_.now()));
      MUSTER_TRY(fingerprint_, http::fingerprint_of(own.certificate));
      MUSTER_TRY(const http::CertificateTimes times, http::times_of(own.certificate));
      MUSTER_TRY(listening, server_->listen(options_.listen, own));
      certificate_watch_.serves(stamps, times);
      look_at_certificate();
      base::log_info("serves on https://" + listening + ", fingerprint sha256 " +
                     http::readable_fingerprint(fingerprint_));
    }
    page_port_ = std::make_unique<PagePort>(loop_, random_, *server_, paths_.page_port());
    page_port_->open_again();
    // Last, because commands take it as the sign that the server is ready.
    MUSTER_CHECK(server_->listen(paths_.socket));
    base::log_info("serves on " + paths_.socket.string());
    address_ = own_address(options_, host_name(), listening, paths_);
    return {};
  }

  server::AppOptions own_app_options() const {
    server::AppOptions own = app_options(options_, paths_, makers_.version);
    if (!options_.listen.empty()) own.address = address_;
    own.need_restart = need_restart_;
    return own;
  }

  // Taking the lead, and losing it.

  void try_to_lead() {
    const auto leads = store_.leadership->try_to_lead(address_);
    if (leads && *leads) {
      const auto led = lead_if_the_jobs_are_free();
      if (!led) return end(led.error());
      if (*led) return;
    }
    wait_for_the_lead(leads);
  }

  void wait_for_the_lead(const Result<bool>& tried) {
    const std::string state = tried ? "waits for the lead" : tried.error().to_string();
    if (waits_for_.empty()) show_role(false);
    if (std::exchange(waits_for_, state) != state) {
      tried ? base::log_info(state) : base::log_warning(state);
      const Standby standby{.version = makers_.version,
                            .state_folder = paths_.state_folder.string(),
                            .engine = options_.engine,
                            .leader = [this] { return latest_leader_; },
                            .leave = [this] { leave(); }};
      door_.let_answer(standby_handler(standby), standby_gate(standby));
    }
    const auto leader = store_.leadership->leader();
    if (leader) latest_leader_ = *leader ? std::optional((*leader)->address) : std::nullopt;
    timer_ = loop_.after(kTryPause, [this] { try_to_lead(); });
  }

  /// False: an earlier leader has not stopped yet, and its engine still watches the jobs.
  Result<bool> lead_if_the_jobs_are_free() {
    auto lock = base::lock_file(leader_lock());
    if (!lock && lock.error().code == ErrorCode::kConflict) return false;
    if (!lock) return std::move(lock).error();
    jobs_lock_ = *std::move(lock);
    MUSTER_CHECK(start_leading());
    return true;
  }

  Result<void> lead() {
    MUSTER_TRY(const bool led, lead_if_the_jobs_are_free());
    if (led) return {};
    return Error{
        .code = ErrorCode::kConflict,
        .what = "another server uses '" + jobs_folder_.string() + "'",
        .advice = "servers can share a folder of jobs only if they share a PostgreSQL database"};
  }

  Result<void> start_leading() {
    MUSTER_TRY(const NotifySettings notifying, notify_settings(options_));
    MUSTER_CHECK(check_engine(jobs_folder_, options_.engine, *store_.store));
    MUSTER_TRY(auto engine, makers_.make_engine(loop_, jobs_folder_, options_));
    // The files of a job are unused until the job is submitted.
    const int64_t unused = std::max(options_.unused_workspace_bytes,
                                    2 * std::min(options_.workspace_bytes, int64_t{1} << 60));
    trees_ = std::make_unique<workspace::TreeStore>(
        config::trees_folder(jobs_folder_),
        workspace::TreeLimits{.tree_bytes = options_.workspace_bytes, .unused_bytes = unused});
    leader_ = std::make_unique<Leader>(Leader::Dependencies{.loop = loop_,
                                                            .store = *store_.store,
                                                            .leadership = store_.leadership,
                                                            .engine = std::move(engine),
                                                            .clock = clock_,
                                                            .random = random_,
                                                            .box = *box_,
                                                            .trees = *trees_,
                                                            .lost = [this] { lost_the_lead(); },
                                                            .leave = [this] { leave(); },
                                                            .door = page_port_.get()},
                                       site_facts(), scheduler_options(options_), own_app_options(),
                                       notifying);
    leader_->set_retention(retention_rules(options_));
    MUSTER_CHECK(leader_->take_up());
    // Not before: a server that is refused must leave no note in a folder of other jobs.
    MUSTER_CHECK(note_engine(jobs_folder_, options_.engine));
    door_.let_answer(leader_->handler(), leader_->gate());
    if (store_.leadership != nullptr) {
      base::log_info("leads, as " + address_);
      show_role(true);
      notify(notify_socket_, "STATUS=leads");
      look_again();
    }
    return {};
  }

  /// What the checks of submitted jobs know about this server.
  control::SiteFacts site_facts() {
    control::SiteFacts site = makers_.site;
    site.images = options_.images;
    site.containers = {.is_shared = !options_.listen.empty(),
                       .host_paths = options_.allowed_host_paths,
                       .capabilities = options_.allowed_capabilities};
    site.slurm = {.is_shared = !options_.listen.empty() && options_.engine == "slurm",
                  .accounts = options_.slurm_accounts,
                  .default_account = options_.slurm_default_account,
                  .job_accounts = options_.slurm_job_accounts,
                  .job_reservations = options_.slurm_job_reservations};
    site.kubernetes = {.is_shared = !options_.listen.empty() && options_.engine == "kubernetes",
                       .service_accounts = options_.kubernetes_job_service_accounts,
                       .priority_classes = options_.kubernetes_job_priority_classes,
                       .pull_secrets = options_.kubernetes_job_pull_secrets,
                       .claims = options_.kubernetes_job_claims,
                       .devices = options_.kubernetes_job_devices};
    site.gaps = gaps();
    // Only the process engine runs jobs of a private server in this machine's own files.
    site.isolates_users = options_.engine != "process" || !options_.listen.empty();
    site.has_tree = [this](const std::string& project, const std::string& tree) {
      return static_cast<bool>(trees_->info(project, tree));
    };
    site.check_running = [this](const std::vector<const job::Job*>& running) {
      Result<void> checked = check_jobs_folder(jobs_folder_, running);
      if (checked || !options_.accepts_lost_jobs) return checked;
      base::log_warning(checked.error().what + "; running jobs count as lost (--accept-lost-jobs)");
      return Result<void>();
    };
    site.project_gone = [this](const std::string& project) { forget_files_of(project); };
    return site;
  }

  void show_role(bool leads) {
    if (role_sign_) role_sign_(leads);
  }

  void forget_files_of(const std::string& project) {
    const auto storage = options_.storage_folder.value_or(config::storage_folder(jobs_folder_));
    for (const Result<void>& gone :
         {set_storage_aside(storage, project, clock_.now()), trees_->forget_project(project)}) {
      if (!gone) base::log_error(gone.error().to_string());
    }
    leader_->remove_forgotten_trees();
  }

  void look_again() {
    timer_ = loop_.after(kTryPause, [this] {
      leader_->look();
      look_again();
    });
  }

  /// The jobs in memory are out of date: the server has to start again.
  void lost_the_lead() {
    end({.code = ErrorCode::kConflict,
         .what = "this server has lost the lead",
         .advice = "another server leads, unless the log has another reason; after a restart, this "
                   "server waits for the lead"});
  }

  void end(Error error) {
    base::log_error(error.to_string());
    outcome_ = std::move(error);
    // Later: the caller of the present commit has to return first.
    loop_.post([this] { loop_.stop(); });
  }

  // Signals and configuration.

  void take_signal(int signals) {
    switch (next_request(signals)) {
      case SignalRequest::kEnd:
        return leave();
      case SignalRequest::kReload:
        return reload();
      case SignalRequest::kNone:
        return;
    }
  }

  /// Stops accepting requests, answers those under way, and stops; the second call stops at once.
  void leave() {
    notify(notify_socket_, "STOPPING=1");
    if (std::exchange(leaving_, true)) return loop_.stop();
    timer_.reset();  // a stopping server does not take the lead
    server_->finish([this] { loop_.stop(); });
    farewell_ = loop_.after(kFarewell, [this] { loop_.stop(); });
  }

  void reload() {
    notify(notify_socket_, "RELOADING=1");
    const Result<void> reloaded = take_over_options();
    if (!reloaded) {
      base::log_error("the configuration is unchanged: " + reloaded.error().to_string());
    }
    notify(notify_socket_, "READY=1");
  }

  Result<void> take_over_options() {
    MUSTER_TRY(const config::ServeOptions read, read_again_());
    MUSTER_TRY(const NotifySettings notifying, notify_settings(read));
    const config::ConfigChanges changes = config::changes_between(options_, read);
    const config::ServeOptions before =
        std::exchange(options_, config::with_reloaded(options_, read));
    if (!options_.listen.empty()) {
      // Even if no setting changed: the files may have.
      const Result<void> set = renew_identity();
      if (!set) {
        options_ = before;
        return set;
      }
    }
    need_restart_ = changes.need_restart;
    // Not an error: a command reads an outdated fingerprint at worst.
    if (const auto noted = config::note_origin(paths_.server_origin(), origin()); !noted) {
      base::log_warning(noted.error().to_string());
    }
    base::set_log_format(options_.log_format);
    server_->set_limits(http_limits(options_));
    if (leader_) {
      leader_->set_options(own_app_options());
      leader_->set_retention(retention_rules(options_));
      leader_->set_options(notifying);
    }
    log_changes(changes);
    return {};
  }

  void look_at_certificate() {
    certificate_watch_.look(tls_files(), clock_.now(), [this] { return renew_identity(); });
    certificate_timer_ = loop_.after(kCertificatePause, [this] { look_at_certificate(); });
  }

  /// Reads the certificate and its key again. An error changes nothing.
  Result<void> renew_identity() {
    const CertificateWatch::Stamps stamps = CertificateWatch::stamps_of(tls_files());
    MUSTER_TRY(const http::TlsIdentity own, find_tls_identity(tls_files(), clock_.now()));
    MUSTER_TRY(const std::string fingerprint, http::fingerprint_of(own.certificate));
    MUSTER_TRY(const http::CertificateTimes times, http::times_of(own.certificate));
    MUSTER_CHECK(server_->set_identity(own));
    certificate_watch_.serves(stamps, times);
    if (std::exchange(fingerprint_, fingerprint) == fingerprint) return {};
    base::log_info("serves a new certificate, fingerprint sha256 " +
                   http::readable_fingerprint(fingerprint));
    return {};
  }

  static void log_changes(const config::ConfigChanges& changes) {
    base::log_info("read the configuration again; " +
                   (changes.taken_over.empty() ? "no setting changed"
                                               : "took over " + base::joined(changes.taken_over)));
    if (changes.need_restart.empty()) return;
    base::log_warning("changed, but takes effect only after a restart: " +
                      base::joined(changes.need_restart));
  }

  config::ServeOptions options_;
  const config::ReadAgain& read_again_;
  const Makers& makers_;

  config::Paths paths_;
  std::filesystem::path jobs_folder_;
  std::string notify_socket_;
  base::UniqueFd lock_;
  base::UniqueFd jobs_lock_;
  base::EventLoop loop_;
  const base::SystemClock clock_;
  base::SystemRandom random_;
  std::unique_ptr<access::SecretBox> box_;
  OpenedStore store_;
  std::function<void(bool leads)> role_sign_;
  std::string address_;
  FrontDoor door_;
  std::unique_ptr<workspace::TreeStore> trees_;
  std::unique_ptr<Leader> leader_;
  std::unique_ptr<PagePort> page_port_;
  std::unique_ptr<http::Server> server_;  ///< destroyed before the leader whose routes it calls
  std::optional<std::string> latest_leader_;
  CertificateWatch certificate_watch_;
  base::EventLoop::Interest certificate_timer_;
  std::string fingerprint_;                ///< of the certificate; empty: it does not listen
  std::vector<std::string> need_restart_;  ///< keys whose values were read, but not taken over
  std::string waits_for_;                  ///< the last reason to wait that was logged
  base::EventLoop::Interest timer_;
  base::EventLoop::Interest farewell_;
  bool leaving_ = false;
  Result<void> outcome_;
};

}  // namespace

Result<void> serve(const config::ServeOptions& options, const config::ReadAgain& read_again,
                   const Makers& makers) {
  return Service(options, read_again, makers).run();
}

}  // namespace muster::service
