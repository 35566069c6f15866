#include "engine/slurm/rest_client.h"

#include <utility>

#include "engine/slurm/rest_client_impl.h"
#include "engine/slurm/rest_request.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr const char* kQueue = "Slurm's queue cannot be read";
constexpr const char* kNodes = "Slurm's nodes cannot be listed";

Error has_no_options(const std::string& option) {
  return {.code = ErrorCode::kInvalid,
          .what = "slurmrestd takes no options of sbatch: '" + option + "'",
          .advice = "leave out slurm_rest, so that sbatch is run, or leave out the options"};
}

Error lost(const std::string& why) {
  return {.code = ErrorCode::kTimeout,
          .what = "Slurm was asked for a job, and its answer was lost: " + why};
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
                .target = impl->speech.submit,
                .body = rest_submit_body(*kept, impl->speech.dialect),
                .doing = "Slurm cannot be asked for a job",
                .submission = kept};
    impl->ask(std::move(ask),
              [impl, then](const Result<std::shared_ptr<const std::string>>& answer) {
                if (!answer) return then(answer.error());
                auto id = impl->named(read_rest_submitted(**answer));
                if (id && *id != 0) return then(*id);
                // It may have been taken: whoever asked has to look.
                const std::string why = id ? "the answer names no job" : id.error().what;
                then(lost(why));
              });
  });
}

// --- listing ---

void RestClient::jobs(Then<std::vector<ListedJob>> then) {
  impl_->when_met([impl = impl_.get(), then](const Result<void>& met) {
    if (!met) return then(met.error());
    impl->load_jobs(impl->speech.dialect.tells_changes && impl->last_update > 0, then);
  });
}

/// An answer to the question for changes alone is empty where nothing has changed; were it ever
/// empty for another reason, the whole list says so.
void RestClient::Impl::load_jobs(bool only_changes, const Then<std::vector<ListedJob>>& then) {
  std::string target = speech.jobs + std::string(speech.dialect.without_details);
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
    impl->ask({.target = impl->speech.nodes, .doing = kNodes},
              [impl, then](const Result<std::shared_ptr<const std::string>>& answer) {
                if (!answer) return then(answer.error());
                impl->read_answer<std::vector<ListedNode>>(
                    *answer, [](const std::string& body) { return read_rest_nodes(body); }, then);
              });
  });
}

// --- what the controller has forgotten ---

void RestClient::past_jobs(std::vector<uint64_t> ids, Then<std::vector<ListedJob>> then) {
  auto asked = std::make_shared<std::vector<uint64_t>>(std::move(ids));
  impl_->when_met([impl = impl_.get(), asked, then](const Result<void>& met) {
    if (!met) return then(met.error());
    if (impl->speech.past_job.empty()) return then(std::vector<ListedJob>());
    impl->ask_past(asked, 0, {}, then);
  });
}

/// One after the other: it is seldom more than one, and the database's answers are slow.
void RestClient::Impl::ask_past(std::shared_ptr<std::vector<uint64_t>> ids, size_t next,
                                std::vector<ListedJob> so_far,
                                const Then<std::vector<ListedJob>>& then) {
  if (next == ids->size()) return then(std::move(so_far));
  RestAsk asked{.target = speech.past_job + std::to_string((*ids)[next]),
                .doing = "Slurm's accounting cannot be read",
                // Without a database there is a fault, too; so it is for a job that it never had.
                .is_no_fault = [](const std::vector<RestFault>&) { return true; }};
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
    if (!impl->speech.cancels_many) return impl->cancel_next(asked, 0, {}, then);
    impl->ask({.method = "DELETE",
               .target = impl->speech.jobs,
               .body = rest_cancel_body(*asked),
               .doing = "Slurm's jobs cannot be ended",
               .is_no_fault = is_over_already},
              [then](const Result<std::shared_ptr<const std::string>>& answer) {
                answer ? then({}) : then(answer.error());
              });
  });
}

/// What cannot be ended does not keep the others from it.
void RestClient::Impl::cancel_next(std::shared_ptr<std::vector<uint64_t>> ids, size_t next,
                                   Result<void> so_far, const Then<void>& then) {
  if (next == ids->size()) return then(std::move(so_far));
  const std::string id = std::to_string((*ids)[next]);
  ask({.method = "DELETE",
       .target = speech.job + id,
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

// --- who it is ---

void RestClient::facts(Then<ClientFacts> then) {
  impl_->when_met([impl = impl_.get(), then](const Result<void>& met) {
    if (!met) return then(met.error());
    impl->ask({.target = impl->speech.ping, .doing = "Slurm cannot be asked for its version"},
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
                                 .api = rest_version_name(impl->speech.version)});
              });
  });
}

// --- the client ---

RestClient::RestClient(base::EventLoop& loop, RestOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}

RestClient::~RestClient() {
  impl_->close();
}

}  // namespace muster::engine::slurm
