#include "muster/parameter_server/client.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "parameter_server/chunk.h"
#include "parameter_server/layout.h"
#include "parameter_server/rpc/lanes.h"
#include "parameter_server/rpc/messages.h"
#include "parameter_server/rpc/security.h"

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

// Names and shapes travel in one message, which gRPC limits to 4 MiB.
constexpr std::size_t kLongestDeclaration = 3 * 1024 * 1024;

Error bad_argument(std::string message) {
  return {ErrorCode::kBadArgument, std::move(message)};
}

Status check_client_options(const ClientOptions& options) {
  if (options.servers.empty()) return bad_argument("the list of parameter servers is empty");
  if (options.worker < 0 || options.worker > static_cast<int>(kHighestWorker)) {
    return bad_argument("invalid worker number " + std::to_string(options.worker));
  }
  return check_silence(options.silence);
}

// A future that is ready at once.
template <typename T>
std::future<T> ready(T value) {
  std::promise<T> promise;
  promise.set_value(std::move(value));
  return promise.get_future();
}

template <typename Buffer>
std::vector<NamedTensor> names_of(std::span<const Buffer> buffers) {
  std::vector<NamedTensor> named;
  for (const Buffer& buffer : buffers) named.push_back({buffer.name, buffer.values.size()});
  return named;
}

Status check_declaration(std::span<const Parameter> parameters, std::span<const Tensor> tensors,
                         const Optimizer& optimizer) {
  if (Status right = check(tensors); !right) return right;
  if (Status right = check(optimizer); !right) return right;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto [name, shape, values] = parameters[i];
    if (values.size() != elements_of(tensors[i])) {
      return bad_argument("'" + name + "' has the shape " + shape_of(tensors[i]) + ", but " +
                          std::to_string(values.size()) + " values");
    }
    if (const auto index = first_not_finite(values)) {
      return bad_argument("element " + std::to_string(*index) + " of the initial values of '" +
                          name + "' is not finite");
    }
  }
  return {};
}

}  // namespace

// The layout of the model, which all calls share. Not in the unnamed namespace, since
// Client::Implementation has a member of this type.
class ModelPlan {
 public:
  ModelPlan(std::vector<Tensor> tensors, std::size_t servers)
      : catalogue_(std::move(tensors)),
        slices_(servers, std::vector<std::vector<Slice>>(catalogue_.tensors().size())) {
    for (std::size_t server = 0; server < servers; ++server) {
      for (const Slice& slice : part_of(catalogue_.tensors(), server, servers)) {
        slices_[server][slice.tensor].push_back(slice);
      }
    }
  }

  const Catalogue& catalogue() const { return catalogue_; }

  /// The parts of `buffers`, which hold the tensors at `places`, that belong to one server.
  template <typename T, typename Buffer>
  std::vector<std::span<T>> pieces(std::size_t server, std::span<const std::size_t> places,
                                   std::span<const Buffer> buffers) const {
    std::vector<std::span<T>> pieces;
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (const Slice& slice : slices_[server][places[i]]) {
        pieces.push_back(buffers[i].values.subspan(slice.first, slice.count));
      }
    }
    return pieces;
  }

 private:
  Catalogue catalogue_;
  std::vector<std::vector<std::vector<Slice>>> slices_;  // by server and tensor
};

class Client::Implementation {
 public:
  Implementation(const ClientOptions& options, const WorkerIdentity& identity)
      : options_(options), lanes_(options, identity) {}

  Status join() {
    const auto deadline = std::chrono::system_clock::now() + options_.connect_timeout;
    const auto clocks = on_all([deadline](std::size_t, Connection& connection) -> Lanes::Part {
      if (Status joined = connection.join(deadline); !joined) return joined.error();
      return connection.clock();
    });
    if (!clocks) return clocks.error();
    first_clock_ = *std::max_element(clocks->begin(), clocks->end());
    return {};
  }

  Result<Declared> declare(std::span<const Parameter> parameters, const Optimizer& optimizer) {
    Declaration declaration = {
        .tensors = {}, .optimizer = optimizer, .servers = options_.servers.size()};
    for (const Parameter& parameter : parameters) {
      declaration.tensors.push_back({parameter.name, parameter.shape});
    }
    if (const Status right = check_declaration(parameters, declaration.tensors, optimizer);
        !right) {
      return right.error();
    }
    if (const Status right = may_call(); !right) return right.error();
    if (plan()) return bad_argument("this client has already declared its model");
    v1::Declaration message = to_message(declaration);
    message.set_clock(first_clock_);
    if (message.ByteSizeLong() > kLongestDeclaration) {
      return bad_argument("the names and shapes of " + std::to_string(parameters.size()) +
                          " parameters take " + std::to_string(message.ByteSizeLong()) +
                          " bytes, more than " + std::to_string(kLongestDeclaration));
    }
    auto plan = std::make_shared<const ModelPlan>(declaration.tensors, lanes_.size());
    const Result<Declared> declared = send(parameters, message, *plan);
    if (declared) set_plan(std::move(plan));
    return declared;
  }

  std::future<Result<Pulled>> pull(std::span<const Destination> destinations) {
    auto tensors = names_of(destinations);
    auto prepared = prepare(tensors);
    if (!prepared) return ready<Result<Pulled>>(prepared.error());
    const auto promise = std::make_shared<std::promise<Result<Pulled>>>();
    // The spans are copied, since the caller's list may no longer exist when the call is made.
    lanes_.on_all(
        [plan = prepared->plan, places = std::move(prepared->places), tensors = std::move(tensors),
         copies = std::vector(destinations.begin(), destinations.end())](std::size_t server,
                                                                         Connection& connection) {
          return connection.pull(tensors,
                                 plan->template pieces<float>(server, places, std::span(copies)));
        },
        [promise](const Result<std::vector<std::uint64_t>>& pushes) {
          if (!pushes) return promise->set_value(pushes.error());
          promise->set_value(Pulled{*std::min_element(pushes->begin(), pushes->end())});
        });
    return promise->get_future();
  }

  std::future<Status> push(std::span<const Gradient> gradients) {
    auto tensors = names_of(gradients);
    auto prepared = prepare(tensors);
    if (!prepared) return ready<Status>(prepared.error());
    if (Status finite = check_finite(gradients); !finite) return ready(std::move(finite));
    const auto promise = std::make_shared<std::promise<Status>>();
    lanes_.on_all(
        [plan = prepared->plan, places = std::move(prepared->places), tensors = std::move(tensors),
         copies = std::vector(gradients.begin(), gradients.end())](std::size_t server,
                                                                   Connection& connection) {
          return number(connection.push(
              tensors, plan->template pieces<const float>(server, places, std::span(copies))));
        },
        [promise](const Result<std::vector<std::uint64_t>>& parts) {
          promise->set_value(outcome(parts));
        });
    return promise->get_future();
  }

  Result<std::vector<ServerStatus>> status() {
    if (const Status right = may_call(); !right) return right.error();
    std::vector<ServerStatus> statuses(lanes_.size());
    const Status all = outcome(on_all([&](std::size_t server, Connection& connection) {
      Result<ServerStatus> one = connection.status();
      if (!one) return Lanes::Part(one.error());
      statuses[server] = *std::move(one);
      return Lanes::Part(0);
    }));
    if (!all) return all.error();
    return statuses;
  }

  Status leave() {
    if (has_left_.exchange(true)) return left();
    return outcome(
        on_all([](std::size_t, Connection& connection) { return number(connection.leave()); }));
  }

 private:
  struct Prepared {
    std::shared_ptr<const ModelPlan> plan;
    std::vector<std::size_t> places;
  };

  static Error left() { return bad_argument("this worker has left its parameter servers"); }

  static Lanes::Part number(const Status& status) {
    if (status) return std::uint64_t{0};
    return status.error();
  }

  static Status outcome(const Result<std::vector<std::uint64_t>>& parts) {
    if (parts) return {};
    return parts.error();
  }

  Result<std::vector<std::uint64_t>> on_all(const Lanes::Work& work) {
    return lanes_.wait_for(0, lanes_.size(), work);
  }

  Status may_call() const {
    if (has_left_) return left();
    return {};
  }

  Result<Prepared> prepare(std::span<const NamedTensor> tensors) const {
    if (const Status right = may_call(); !right) return right.error();
    const std::shared_ptr<const ModelPlan> plan = this->plan();
    if (!plan) return bad_argument("declare() the model before pull() and push()");
    Result<std::vector<std::size_t>> places = plan->catalogue().look_up(tensors);
    if (!places) return places.error();
    return Prepared{.plan = plan, .places = *std::move(places)};
  }

  Status check_finite(std::span<const Gradient> gradients) const {
    for (const Gradient& gradient : gradients) {
      const auto index = first_not_finite(gradient.values);
      if (!index) continue;
      return not_finite(gradient.values[*index],
                        "element " + std::to_string(*index) + " of '" + gradient.name + "'",
                        options_.worker);
    }
    return {};
  }

  // The first server decides whose values count. If all servers were asked at once, each of two
  // workers that declare at the same time could win on some servers.
  Result<Declared> send(std::span<const Parameter> parameters, const v1::Declaration& message,
                        const ModelPlan& plan) {
    std::vector<std::size_t> places(parameters.size());
    std::iota(places.begin(), places.end(), 0);
    const auto declare_on = [&](std::size_t server, Connection& connection,
                                std::optional<std::uint64_t> values_of) {
      return connection.declare(message, values_of,
                                plan.pieces<const float>(server, places, parameters));
    };
    bool was_first = false;
    const auto winner = lanes_.wait_for(0, 1, [&](std::size_t server, Connection& connection) {
      const auto values = declare_on(server, connection, std::nullopt);
      if (!values) return Lanes::Part(values.error());
      was_first = values->taken;
      return Lanes::Part(values->worker);
    });
    if (!winner) return winner.error();
    const std::optional<std::uint64_t> values_of =
        was_first ? std::nullopt : std::optional(winner->front());
    const auto rest =
        lanes_.wait_for(1, lanes_.size(), [&](std::size_t server, Connection& connection) {
          const auto values = declare_on(server, connection, values_of);
          if (!values) return Lanes::Part(values.error());
          if (was_first && !values->taken) return Lanes::Part(of_an_earlier_start(server));
          return Lanes::Part(values->worker);
        });
    if (!rest) return rest.error();
    return Declared{was_first};
  }

  Error of_an_earlier_start(std::size_t server) const {
    return {ErrorCode::kMismatch,
            "parameter server " + std::to_string(server) + " (" + options_.servers[server] +
                ") has a model already, and parameter server 0 had none",
            "start all parameter servers of the job anew"};
  }

  std::shared_ptr<const ModelPlan> plan() const {
    const std::lock_guard lock(mutex_);
    return plan_;
  }
  void set_plan(std::shared_ptr<const ModelPlan> plan) {
    const std::lock_guard lock(mutex_);
    plan_ = std::move(plan);
  }

  const ClientOptions options_;
  std::uint64_t first_clock_ = 0;  // set by join()
  std::atomic<bool> has_left_ = false;
  mutable std::mutex mutex_;
  std::shared_ptr<const ModelPlan> plan_;
  Lanes lanes_;
};

Client::Client(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(const ClientOptions& options) {
  if (const Status right = check_client_options(options); !right) return right.error();
  const Result<WorkerIdentity> identity = worker_identity(options.key);
  if (!identity) return identity.error();
  auto implementation = std::make_unique<Implementation>(options, *identity);
  if (const Status joined = implementation->join(); !joined) return joined.error();
  return Client(std::move(implementation));
}

Result<Declared> Client::declare(std::span<const Parameter> parameters,
                                 const Optimizer& optimizer) {
  return implementation_->declare(parameters, optimizer);
}
Result<Declared> Client::declare(std::initializer_list<Parameter> parameters,
                                 const Optimizer& optimizer) {
  return declare(std::span(parameters.begin(), parameters.size()), optimizer);
}

std::future<Result<Pulled>> Client::pull_async(std::span<const Destination> destinations) {
  return implementation_->pull(destinations);
}
Result<Pulled> Client::pull(std::span<const Destination> destinations) {
  return pull_async(destinations).get();
}
Result<Pulled> Client::pull(std::initializer_list<Destination> destinations) {
  return pull(std::span(destinations.begin(), destinations.size()));
}

std::future<Status> Client::push_async(std::span<const Gradient> gradients) {
  return implementation_->push(gradients);
}
Status Client::push(std::span<const Gradient> gradients) {
  return push_async(gradients).get();
}
Status Client::push(std::initializer_list<Gradient> gradients) {
  return push(std::span(gradients.begin(), gradients.size()));
}

Result<std::vector<ServerStatus>> Client::status() {
  return implementation_->status();
}

Status Client::leave() {
  return implementation_->leave();
}

}  // namespace muster::parameter_server
