// What the parts of RestClient share: asking slurmrestd for something once it is known what it
// serves, and the calls that are under way.
//
// Private to rest_client*.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/slurm/rest_client.h"
#include "engine/slurm/rest_faults.h"
#include "engine/slurm/rest_json.h"
#include "engine/slurm/rest_token.h"
#include "engine/slurm/rest_versions.h"
#include "http/async_client.h"

namespace muster::engine::slurm {

/// One thing that slurmrestd is asked for.
struct RestAsk {
  std::string method = "GET";
  std::string target;  ///< path and query, without the endpoint's prefix
  std::string body = {};
  std::string doing;                                  ///< "Slurm's queue cannot be read"
  std::shared_ptr<const Submission> submission = {};  ///< where it is one
  /// What a fault means here; unset, or nothing: as rest_error() has it.
  std::function<bool(const std::vector<RestFault>&)> is_no_fault = {};
  bool may_be_missing = false;  ///< not to be served is no fault: an empty answer
  bool has_new_token = false;   ///< asked again, with another token
};

struct RestClient::Impl : std::enable_shared_from_this<Impl> {
  template <class Value>
  using Then = std::function<void(base::Result<Value>)>;
  /// The body of an answer that tells of no fault, empty where the fault is none.
  using Answered = Then<std::shared_ptr<const std::string>>;
  using Met = std::function<void(const base::Result<void>&)>;

  Impl(base::EventLoop& its_loop, RestOptions its_options);

  /// Calls `then` when it is known what is served.
  void when_met(Met then);
  /// REQUIRES: within when_met(), for what `speech` has; else the target stands for itself.
  void ask(RestAsk ask, Answered answered);

  /// What `read` makes of an answer: at once, or of a large one on another thread.
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

  /// `then` later, unless the client is gone.
  void soon(std::function<void()> then);
  void close();

  template <class Value>
  base::Result<Value> named(base::Result<Value> value) const {
    if (value) return value;
    base::Error error = std::move(value).error();
    error.what += " (" + name + ")";
    return error;
  }

  /// Read on another thread beyond this: it takes some milliseconds.
  static constexpr size_t kReadAtOnce = 256U << 10U;

  base::EventLoop& loop;
  const RestOptions options;
  const std::string name;  ///< "slurmrestd at unix:///run/slurmrestd.sock"

  RestSpeech speech;
  std::vector<ListedJob> last_jobs;  ///< of `last_update`
  int64_t last_update = 0;           ///< 0: there is none
  bool closed = false;

 private:
  void send(std::shared_ptr<RestAsk> ask, Answered answered, const std::string& token);
  void send_with_token(std::shared_ptr<RestAsk> ask, Answered answered);
  bool wants_other_token(const RestAsk& ask, RestFailure failure, bool had_token) const;
  void has_answered(const std::shared_ptr<RestAsk>& ask, const Answered& answered, bool was_sent,
                    bool had_token, base::Result<http::Response> answer);
  void ask_what_is_served(const std::string& path);
  void met(const base::Result<void>& result);
  base::Result<http::AsyncClient*> client();

  std::optional<http::AsyncClient> connection_;
  std::unique_ptr<RestToken> token_;  ///< null: the client is gone
  bool needs_token_;
  std::vector<Met> meeting_;  ///< who waits for what is served
  std::map<uint64_t, http::AsyncCall> calls_;
  uint64_t last_call_ = 0;

 public:
  base::Background reader;  ///< last: its pieces are done before anything else goes
};

}  // namespace muster::engine::slurm
