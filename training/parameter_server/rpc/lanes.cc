#include "parameter_server/rpc/lanes.h"

#include <future>
#include <utility>

namespace muster::parameter_server {

using collective::Error;
using collective::ErrorCode;
using collective::Result;

// The outcomes so far of the parts of one piece of work.
struct Lanes::Round {
  Round(std::size_t parts, Done when_done)
      : missing(parts), values(parts), done(std::move(when_done)) {}

  void finish_part(std::size_t part, const Part& result) {
    {
      const std::lock_guard lock(mutex);
      if (result) {
        values[part] = *result;
      } else if (!error) {
        error = result.error();
      }
      if (--missing != 0) return;
    }
    if (error) return done(*std::move(error));
    done(std::move(values));
  }

  std::mutex mutex = {};
  std::size_t missing;
  std::vector<std::uint64_t> values;
  std::optional<Error> error = {};
  Done done;
};

Lanes::Lanes(const ClientOptions& options, const WorkerIdentity& identity) {
  for (std::size_t i = 0; i < options.servers.size(); ++i) {
    lanes_.push_back(std::make_unique<Lane>(std::make_unique<Connection>(
        Whom{.server = static_cast<int>(i), .address = options.servers[i]}, options, identity,
        [this](const Error& error) { fail(error); })));
  }
}

Lanes::~Lanes() {
  fail({ErrorCode::kBadArgument, "the client was destroyed during the call"});
}

std::optional<Error> Lanes::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Lanes::fail(const Error& error) {
  // The lock is held to the end: the destructor calls this function, too, and must not overtake.
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = error;
  for (const auto& lane : lanes_) lane->cancel();
}

void Lanes::start(std::size_t first, std::size_t end, const Work& work, Done done) {
  if (first == end) return done(std::vector<std::uint64_t>());
  const auto round = std::make_shared<Round>(end - first, std::move(done));
  const std::lock_guard lock(order_);
  for (std::size_t i = first; i < end; ++i) {
    lanes_[i]->post([this, round, work, i, first](Connection& connection) {
      if (const auto before = failure()) return round->finish_part(i - first, *before);
      Part part = work(i, connection);
      // A call that was cut off because another server failed returns that server's failure.
      if (!part) {
        fail(part.error());
        part = *failure();
      }
      round->finish_part(i - first, part);
    });
  }
}

void Lanes::on_all(const Work& work, Done done) {
  start(0, lanes_.size(), work, std::move(done));
}

Result<std::vector<std::uint64_t>> Lanes::wait_for(std::size_t first, std::size_t end,
                                                   const Work& work) {
  std::promise<Result<std::vector<std::uint64_t>>> promise;
  start(first, end, work,
        [&](Result<std::vector<std::uint64_t>> values) { promise.set_value(std::move(values)); });
  return promise.get_future().get();
}

}  // namespace muster::parameter_server
