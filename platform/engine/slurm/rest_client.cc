#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/slurm/open_client.h"
#include "engine/slurm/rest_access.h"
#include "engine/slurm/rest_answer.h"
#include "engine/slurm/rest_request.h"
#include "http/async_client.h"

namespace muster::engine::slurm {

/// A request to slurmrestd.
struct RestAsk {
  std::string method = "GET";
  std::string target;  ///< path and query, without the endpoint's prefix
  std::string body = {};
  std::string doing;                                  ///< "Slurm's queue cannot be read"
  std::shared_ptr<const Submission> submission = {};  ///< if the request is a submission
  /// Whether faults are not errors here; unset: they are, as in rest_error().
  std::function<bool(const std::vector<RestFault>&)> is_no_fault = {};
  bool may_be_missing = false;  ///< a path that is not served means an empty answer
  bool has_new_token = false;   ///< the request is repeated with another token
};

struct RestClient::Impl : std::enable_shared_from_this<Impl> {
  template <class Value>
  using Then = std::function<void(base::Result<Value>)>;
  /// The body of an answer without faults; empty if the faults are not errors.
  using Answered = Then<std::shared_ptr<const std::string>>;
  using Met = std::function<void(const base::Result<void>&)>;

  Impl(base::EventLoop& its_loop, RestOptions its_options);

  /// Calls `then` when the paths of slurmrestd are known.
  void when_met(Met then);
  /// Sends a request. REQUIRES: called within when_met() if the target is one of `interface`.
  void ask(RestAsk ask, Answered answered);

  /// Parses an answer with `read`: at once, or a large answer on another thread.
  template <class Value, class Read>
  void read_answer(const std::shared_ptr<const std::string>& body, Read read, Then<Value> then) {
    if (body->size() <= kReadAtOnce) return then(named(read(*body)));
    auto value = std::make_shared<std::optional<base::Result<Value>>>();
    reader.run([body, read, value] { value->emplace(read(*body)); },
               [weak = weak_from_this(), value, then] {
                 const auto self = weak.lock();
                 if (self != nullptr && !self->closed) then(self->named(**std::move(value)));
               });
  }

  void cancel_next(std::shared_ptr<std::vector<uint64_t>> ids, size_t next,
                   base::Result<void> so_far, const Then<void>& then);
  void ask_past(std::shared_ptr<std::vector<uint64_t>> ids, size_t next,
                std::vector<ListedJob> so_far, const Then<std::vector<ListedJob>>& then);
  void load_jobs(bool only_changes, const Then<std::vector<ListedJob>>& then);

  /// Calls `then` later, unless the client is destroyed before.
  void soon(std::function<void()> then);
  void close();

  template <class Value>
  base::Result<Value> named(base::Result<Value> value) const {
    if (value) return value;
    base::Error error = std::move(value).error();
    error.what += " (" + name + ")";
    return error;
  }

  /// Longer answers are parsed on another thread, since that takes some milliseconds.
  static constexpr size_t kReadAtOnce = 256U << 10U;

  base::EventLoop& loop;
  const RestOptions options;
  const std::string name;  ///< "slurmrestd at unix:///run/slurmrestd.sock"

  RestInterface interface;
  std::vector<ListedJob> last_jobs;  ///< as of `last_update`
  int64_t last_update = 0;           ///< 0: no listing yet
  bool closed = false;

 private:
  void send(std::shared_ptr<RestAsk> ask, Answered answered, const std::string& token);
  void send_with_token(std::shared_ptr<RestAsk> ask, Answered answered);
  bool needs_other_token(const RestAsk& ask, RestFailure failure, bool had_token) const;
  void has_answered(const std::shared_ptr<RestAsk>& ask, const Answered& answered, bool was_sent,
                    bool had_token, base::Result<http::Response> answer);
  void ask_for_description(const std::string& path);
  void met(const base::Result<void>& result);
  base::Result<http::AsyncClient*> client();

  std::optional<http::AsyncClient> connection_;
  std::unique_ptr<RestToken> token_;  ///< null: the client is closed
  bool needs_token_;
  std::vector<Met> meeting_;  ///< calls that wait for the paths of slurmrestd
  std::map<uint64_t, http::AsyncCall> calls_;
  uint64_t last_call_ = 0;

 public:
  base::Background reader;  ///< last: its work ends before other members are destroyed
};

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr const char* kQueue = "Slurm's queue cannot be read";
constexpr const char* kNodes = "Slurm's nodes cannot be listed";

Error has_no_options(const std::string& option) {
  return {.code = ErrorCode::kInvalid,
          .what = "slurmrestd does not support options of sbatch: '" + option + "'",
          .advice = "remove slurm.rest, so that Muster runs sbatch, or remove the options"};
}

Error lost(const std::string& why) {
  return {.code = ErrorCode::kTimeout,
          .what = "a job was submitted to Slurm, and the answer was lost: " + why};
}

}  // namespace

// --- submitting ---

void RestClient::submit(Submission submission, Then<uint64_t> then) {
  if (!submission.options.empty()) {
    return impl_->soon(
        [then, option = submission.options.front()] { then(has_no_options(option)); });
  }
  auto kept = std::make_shared<const Submission>(std::move(submission));
  impl_->when_met([impl = impl_.get(), kept, then](const Result<void>& met) {
    if (!met) return then(met.error());
    RestAsk ask{.method = "POST",
                .target = impl->interface.submit,
                .body = rest_submit_body(*kept, impl->interface.dialect),
                .doing = "Slurm cannot accept a job",
                .submission = kept};
    impl->ask(std::move(ask),
              [impl, then](const Result<std::shared_ptr<const std::string>>& answer) {
                if (!answer) return then(answer.error());
                auto id = impl->named(read_rest_submitted(**answer));
                if (id && *id != 0) return then(*id);
                // The job may have been accepted: the caller must look for it.
                const std::string why = id ? "the answer has no job id" : id.error().what;
                then(lost(why));
              });
  });
}

// --- listing ---

void RestClient::jobs(Then<std::vector<ListedJob>> then) {
  impl_->when_met([impl = impl_.get(), then](const Result<void>& met) {
    if (!met) return then(met.error());
    impl->load_jobs(impl->interface.dialect.reports_changes && impl->last_update > 0, then);
  });
}

/// An answer to a request for changes is empty if nothing has changed. In case it is ever empty for
/// another reason, the complete list is requested next.
void RestClient::Impl::load_jobs(bool only_changes, const Then<std::vector<ListedJob>>& then) {
  std::string target = interface.jobs + std::string(interface.dialect.without_details);
  if (only_changes) target += "&update_time=" + std::to_string(last_update);
  ask({.target = std::move(target), .doing = kQueue},
      [this, only_changes, then](const Result<std::shared_ptr<const std::string>>& answer) {
        if (!answer) return then(answer.error());
        const RestUser user{.id = options.user_id, .name = options.user};
        read_answer<RestJobs>(
            *answer,
            [user, only_changes](const std::string& body) {
              return read_rest_jobs(body, user, only_changes);
            },
            [this, only_changes, then](Result<RestJobs> read) {
              if (!read) return then(std::move(read).error());
              if (only_changes && read->is_empty) {
                return read->warns ? then(last_jobs) : load_jobs(false, then);
              }
              last_update = read->last_update;
              last_jobs = read->jobs;
              then(std::move(read->jobs));
            });
      });
}

void RestClient::nodes(Then<std::vector<ListedNode>> then) {
  impl_->when_met([impl = impl_.get(), then](const Result<void>& met) {
    if (!met) return then(met.error());
    impl->ask({.target = impl->interface.nodes, .doing = kNodes},
              [impl, then](const Result<std::shared_ptr<const std::string>>& answer) {
                if (!answer) return then(answer.error());
                impl->read_answer<std::vector<ListedNode>>(
                    *answer, [](const std::string& body) { return read_rest_nodes(body); }, then);
              });
  });
}

// --- jobs that the controller has forgotten ---

void RestClient::past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) {
  auto asked = std::make_shared<std::vector<uint64_t>>(std::move(ids));
  impl_->when_met([impl = impl_.get(), asked, then](const Result<void>& met) {
    if (!met) return then(met.error());
    if (impl->interface.past_job.empty()) return then(std::vector<ListedJob>());
    impl->ask_past(asked, 0, {}, then);
  });
}

/// One request after the other: there is seldom more than one, and the database is slow.
void RestClient::Impl::ask_past(std::shared_ptr<std::vector<uint64_t>> ids, size_t next,
                                std::vector<ListedJob> so_far,
                                const Then<std::vector<ListedJob>>& then) {
  if (next == ids->size()) return then(std::move(so_far));
  RestAsk asked{.target = interface.past_job + std::to_string((*ids)[next]),
                .doing = "Slurm's accounting cannot be read",
                .is_no_fault = is_unknown_in_past};
  ask(std::move(asked), [this, ids, next, so_far = std::move(so_far),
                         then](const Result<std::shared_ptr<const std::string>>& answer) mutable {
    if (!answer) return then(answer.error());
    auto read =
        (*answer)->empty() ? std::vector<ListedJob>() : named(read_rest_past_jobs(**answer));
    if (!read) return then(std::move(read).error());
    for (ListedJob& job : *read) {
      if (job.id == (*ids)[next]) so_far.push_back(std::move(job));
    }
    ask_past(ids, next + 1, std::move(so_far), then);
  });
}

// --- ending ---

void RestClient::cancel(std::vector<uint64_t> ids, Then<void> then) {
  if (ids.empty()) return impl_->soon([then] { then({}); });
  auto asked = std::make_shared<std::vector<uint64_t>>(std::move(ids));
  impl_->when_met([impl = impl_.get(), asked, then](const Result<void>& met) {
    if (!met) return then(met.error());
    if (!impl->interface.cancels_many) return impl->cancel_next(asked, 0, {}, then);
    impl->ask({.method = "DELETE",
               .target = impl->interface.jobs,
               .body = rest_cancel_body(*asked),
               .doing = "Slurm's jobs cannot be ended",
               .is_no_fault = is_over_already},
              [then](const Result<std::shared_ptr<const std::string>>& answer) {
                answer ? then({}) : then(answer.error());
              });
  });
}

/// A job that cannot be cancelled does not keep the others from being cancelled.
void RestClient::Impl::cancel_next(std::shared_ptr<std::vector<uint64_t>> ids, size_t next,
                                   Result<void> so_far, const Then<void>& then) {
  if (next == ids->size()) return then(std::move(so_far));
  const std::string id = std::to_string((*ids)[next]);
  ask({.method = "DELETE",
       .target = interface.job + id,
       .doing = "Slurm job " + id + " cannot be ended",
       .is_no_fault = is_over_already},
      [this, ids, next, so_far = std::move(so_far),
       then](const Result<std::shared_ptr<const std::string>>& answer) mutable {
        const bool nobody_answers = !answer && answer.error().code == ErrorCode::kUnavailable;
        if (nobody_answers) return then(answer.error());
        if (!answer && so_far) so_far = answer.error();
        cancel_next(ids, next + 1, std::move(so_far), then);
      });
}

// --- facts ---

void RestClient::facts(Then<ClientFacts> then) {
  impl_->when_met([impl = impl_.get(), then](const Result<void>& met) {
    if (!met) return then(met.error());
    impl->ask({.target = impl->interface.ping, .doing = "the version of Slurm cannot be read"},
              [impl, then](const Result<std::shared_ptr<const std::string>>& answer) {
                if (!answer) return then(answer.error());
                const auto ping = impl->named(read_rest_ping(**answer));
                if (!ping) return then(ping.error());
                if (!ping->is_up) {
                  return then(rest_error(RestFailure::kNotReached, "no controller answers a ping",
                                         "Slurm cannot be used", impl->name));
                }
                then(ClientFacts{.way = impl->name,
                                 .version = ping->version,
                                 .api = rest_version_name(impl->interface.version)});
              });
  });
}

// --- the client ---

RestClient::RestClient(base::EventLoop& loop, RestOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}

RestClient::~RestClient() {
  impl_->close();
}

// --- requests: the paths of slurmrestd, the token, and the meaning of an answer

namespace {

/// The lowest HTTP status that is a failure.
constexpr int kFirstFault = 400;
constexpr const char* kDescription = "/openapi/v3";
constexpr const char* kOldDescription = "/openapi";

/// An answer with an id means that the job was accepted, whatever its faults (it may be held).
bool is_taken(const std::string& body) {
  const auto id = read_rest_submitted(body);
  return id && *id != 0;
}

std::string no_common_version(const RestPaths& paths) {
  std::string theirs;
  for (const int version : paths.versions) {
    theirs += (theirs.empty() ? "" : ", ") + rest_version_name(version);
  }
  return "it serves " + (theirs.empty() ? "no version of Slurm's interface" : theirs) +
         ", and Muster supports " + rest_version_name(kOldestRestVersion) + " to " +
         rest_version_name(kNewestRestVersion);
}

Error token_is_exposed(const std::string& name) {
  return {.code = ErrorCode::kRefused,
          .what = name +
                  " requires a token, which other users of the network could read and use as this "
                  "user in Slurm",
          .advice =
              "use a unix socket, an address of this machine, or https with a TLS proxy in front "
              "of slurmrestd"};
}

}  // namespace

RestClient::Impl::Impl(base::EventLoop& its_loop, RestOptions its_options)
    : loop(its_loop),
      options(std::move(its_options)),
      name("slurmrestd at " + to_string(options.endpoint)),
      token_(std::make_unique<RestToken>(loop, options.token_command)),
      needs_token_(!std::holds_alternative<RestSocket>(options.endpoint.where)),
      reader(its_loop) {}

Result<http::AsyncClient*> RestClient::Impl::client() {
  if (!connection_) {
    MUSTER_TRY(http::AsyncPlace place, place_of(options.endpoint));
    connection_.emplace(loop, std::move(place), name);
  }
  return &*connection_;
}

void RestClient::Impl::soon(std::function<void()> then) {
  loop.post([weak = weak_from_this(), then = std::move(then)] {
    const auto self = weak.lock();
    if (self != nullptr && !self->closed) then();
  });
}

void RestClient::Impl::close() {
  closed = true;
  const auto dropped_calls = std::exchange(calls_, {});
  const auto dropped_meeting = std::exchange(meeting_, {});
  const auto dropped_token = std::exchange(token_, nullptr);
}

// --- one request ---

void RestClient::Impl::ask(RestAsk ask, Answered answered) {
  auto asked = std::make_shared<RestAsk>(std::move(ask));
  if (!needs_token_) return send(std::move(asked), std::move(answered), {});
  send_with_token(std::move(asked), std::move(answered));
}

void RestClient::Impl::send_with_token(std::shared_ptr<RestAsk> ask, Answered answered) {
  if (!is_private(options.endpoint)) {
    return soon([answered, error = token_is_exposed(name)] { answered(error); });
  }
  token_->get([this, ask, answered](const Result<std::string>& token) {
    if (token) return send(ask, answered, *token);
    // Always later: the caller must not be re-entered.
    soon([answered, error = token.error()] { answered(error); });
  });
}

void RestClient::Impl::send(std::shared_ptr<RestAsk> ask, Answered answered,
                            const std::string& token) {
  auto connected = client();
  if (!connected) {
    return soon([answered, error = connected.error()] { answered(error); });
  }
  http::AsyncRequest request{.method = ask->method,
                             .target = options.endpoint.prefix + ask->target,
                             .headers = {{"accept", "application/json"}},
                             .body = ask->body};
  if (!ask->body.empty()) request.headers["content-type"] = "application/json";
  if (!token.empty()) {
    request.headers["x-slurm-user-name"] = options.user;
    request.headers["x-slurm-user-token"] = token;
  }
  const auto was_sent = std::make_shared<bool>(false);
  request.on_sending = [was_sent] { *was_sent = true; };
  const uint64_t call = ++last_call_;
  calls_[call] = (*connected)
                     ->send(std::move(request),
                            {.connect = options.connect_patience,
                             .answer = options.answer_patience,
                             .body_bytes = options.most_bytes},
                            [this, call, ask, answered, was_sent,
                             had_token = !token.empty()](Result<http::Response> answer) {
                              const auto self =
                                  shared_from_this();  // `answered` may destroy the client
                              const auto dropped = calls_.extract(call);
                              has_answered(ask, answered, *was_sent, had_token, std::move(answer));
                            });
}

void RestClient::Impl::has_answered(const std::shared_ptr<RestAsk>& ask, const Answered& answered,
                                    bool was_sent, bool had_token, Result<http::Response> answer) {
  if (!answer) {
    Error error = std::move(answer).error();
    connection_.reset();  // read the certificates again: they may be the cause
    if (was_sent && ask->submission != nullptr) {
      error = {.code = ErrorCode::kTimeout,
               .what = "a job was submitted to Slurm, and the answer was lost: " + error.what};
    } else {
      error.what = ask->doing + ": " + error.what;
    }
    return answered(std::move(error));
  }
  // A large answer is not a fault, and is not parsed here.
  const bool is_small = answer->body.size() <= kReadAtOnce;
  const auto faults = is_small ? read_rest_faults(answer->body) : std::vector<RestFault>();
  const bool is_done = (ask->submission != nullptr && is_taken(answer->body)) ||
                       (answer->status < kFirstFault && faults.empty());
  if (is_done) {
    return answered(std::make_shared<const std::string>(std::move(answer->body)));
  }
  const RestFailure failure = rest_failure_of(answer->status, faults);
  if (needs_other_token(*ask, failure, had_token)) {
    ask->has_new_token = true;
    needs_token_ = true;
    if (had_token) token_->drop();
    return send_with_token(ask, answered);
  }
  if (failure == RestFailure::kRefused && ask->is_no_fault && ask->is_no_fault(faults)) {
    return answered(std::make_shared<const std::string>());
  }
  if (failure == RestFailure::kNotServed && ask->may_be_missing) {
    return answered(std::make_shared<const std::string>());
  }
  if (failure == RestFailure::kNotServed) interface = {};
  answered(rest_error(failure, words_of(answer->status, faults), ask->doing, name,
                      ask->submission.get()));
}

/// slurmrestd does not check tokens. If the controller rejects one, the error has no name; nothing
/// was done then, except that a submission may have been accepted.
bool RestClient::Impl::needs_other_token(const RestAsk& ask, RestFailure failure,
                                         bool had_token) const {
  if (ask.has_new_token) return false;
  if (failure == RestFailure::kUnauthorized) return true;
  return failure == RestFailure::kUnspecified && had_token && ask.submission == nullptr &&
         token_->age() >= options.token_trust;
}

// --- the first requests ---

void RestClient::Impl::when_met(Met then) {
  if (interface) return then({});
  meeting_.push_back(std::move(then));
  if (meeting_.size() == 1) ask_for_description(kDescription);
}

void RestClient::Impl::ask_for_description(const std::string& path) {
  RestAsk asked{.target = path, .doing = "Slurm cannot be used"};
  asked.may_be_missing = path == kDescription;
  ask(std::move(asked), [this, path](const Result<std::shared_ptr<const std::string>>& answer) {
    if (!answer) return met(answer.error());
    if ((*answer)->empty()) return ask_for_description(kOldDescription);
    read_answer<RestPaths>(
        *answer, [](const std::string& body) { return read_rest_paths(body); },
        [this](const Result<RestPaths>& paths) {
          if (!paths) return met(paths.error());
          interface = choose_interface(*paths, options.newest_version);
          if (interface) return met({});
          met(Error{
              .code = ErrorCode::kUnavailable,
              .what = name + " cannot be used: " + no_common_version(*paths),
              .advice =
                  "start it with plugins of supported versions (slurmrestd -s list shows them)"});
        });
  });
}

void RestClient::Impl::met(const Result<void>& result) {
  const auto self = shared_from_this();
  for (const auto& then : std::exchange(meeting_, {})) {
    if (!closed) then(result);
  }
}

}  // namespace muster::engine::slurm
