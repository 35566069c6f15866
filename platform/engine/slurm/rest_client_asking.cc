// Asking slurmrestd: what it serves, with which token, and what its answer means.
#include <utility>

#include "engine/slurm/rest_client_impl.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr int kFirstFault = 400;
constexpr const char* kDescription = "/openapi/v3";
constexpr const char* kOldDescription = "/openapi";

/// With an id it was taken, whatever else is said (that it is held, for one).
bool is_taken(const std::string& body) {
  const auto id = read_rest_submitted(body);
  return id && *id != 0;
}

std::string no_common_version(const RestPaths& paths) {
  std::string theirs;
  for (const int version : paths.versions) {
    theirs += (theirs.empty() ? "" : ", ") + rest_version_name(version);
  }
  return "it serves " + (theirs.empty() ? "nothing of Slurm" : theirs) + ", and Muster speaks " +
         rest_version_name(kOldestRestVersion) + " to " + rest_version_name(kNewestRestVersion);
}

Error is_overheard(const std::string& name) {
  return {.code = ErrorCode::kRefused,
          .what = name +
                  " wants a token, which others could read on the way: whoever has it is "
                  "this user in Slurm",
          .advice =
              "name slurmrestd by a unix socket, by an address of this machine, or by https, "
              "with a proxy that speaks TLS before it"};
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

// --- one question ---

void RestClient::Impl::ask(RestAsk ask, Answered answered) {
  auto asked = std::make_shared<RestAsk>(std::move(ask));
  if (!needs_token_) return send(std::move(asked), std::move(answered), {});
  send_with_token(std::move(asked), std::move(answered));
}

void RestClient::Impl::send_with_token(std::shared_ptr<RestAsk> ask, Answered answered) {
  if (!is_private(options.endpoint)) {
    return soon([answered, error = is_overheard(name)] { answered(error); });
  }
  token_->get([this, ask, answered](const Result<std::string>& token) {
    if (token) return send(ask, answered, *token);
    // Later, always: whoever asked may be in the midst of something.
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
                                  shared_from_this();  // `answered` may end the client
                              const auto dropped = calls_.extract(call);
                              has_answered(ask, answered, *was_sent, had_token, std::move(answer));
                            });
}

void RestClient::Impl::has_answered(const std::shared_ptr<RestAsk>& ask, const Answered& answered,
                                    bool was_sent, bool had_token, Result<http::Response> answer) {
  if (!answer) {
    Error error = std::move(answer).error();
    connection_.reset();  // certificates may have been the reason: they are read anew
    if (was_sent && ask->submission != nullptr) {
      error = {.code = ErrorCode::kTimeout,
               .what = "Slurm was asked for a job, and its answer was lost: " + error.what};
    } else {
      error.what = ask->doing + ": " + error.what;
    }
    return answered(std::move(error));
  }
  // What is large is no fault, and is not read here.
  const bool is_small = answer->body.size() <= kReadAtOnce;
  const auto faults = is_small ? read_rest_faults(answer->body) : std::vector<RestFault>();
  const bool is_done = (ask->submission != nullptr && is_taken(answer->body)) ||
                       (answer->status < kFirstFault && faults.empty());
  if (is_done) {
    return answered(std::make_shared<const std::string>(std::move(answer->body)));
  }
  const RestFailure failure = rest_failure_of(answer->status, faults);
  if (wants_other_token(*ask, failure, had_token)) {
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
  if (failure == RestFailure::kNotServed) speech = {};
  answered(rest_error(failure, words_of(answer->status, faults), ask->doing, name,
                      ask->submission.get()));
}

/// slurmrestd takes a token as it is; the controller, which refuses it, is heard as an error
/// without a name. Nothing was done then, but of a submission that is not certain.
bool RestClient::Impl::wants_other_token(const RestAsk& ask, RestFailure failure,
                                         bool had_token) const {
  if (ask.has_new_token) return false;
  if (failure == RestFailure::kUnauthorized) return true;
  return failure == RestFailure::kUnspecified && had_token && ask.submission == nullptr &&
         token_->age() >= options.token_trust;
}

// --- the first words ---

void RestClient::Impl::when_met(Met then) {
  if (speech) return then({});
  meeting_.push_back(std::move(then));
  if (meeting_.size() == 1) ask_what_is_served(kDescription);
}

void RestClient::Impl::ask_what_is_served(const std::string& path) {
  RestAsk asked{.target = path, .doing = "Slurm cannot be used"};
  asked.may_be_missing = path == kDescription;
  ask(std::move(asked), [this, path](const Result<std::shared_ptr<const std::string>>& answer) {
    if (!answer) return met(answer.error());
    if ((*answer)->empty()) return ask_what_is_served(kOldDescription);
    read_answer<RestPaths>(
        *answer, [](const std::string& body) { return read_rest_paths(body); },
        [this](const Result<RestPaths>& paths) {
          if (!paths) return met(paths.error());
          speech = choose_speech(*paths, options.newest_version);
          if (speech) return met({});
          met(Error{.code = ErrorCode::kUnavailable,
                    .what = name + " cannot be used: " + no_common_version(*paths),
                    .advice = "start it with plugins of these versions (slurmrestd -s list)"});
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
