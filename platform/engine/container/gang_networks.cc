#include "engine/container/gang_networks.h"

#include "engine/container/labels.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

/// Docker has addresses for about thirty networks by default. Docker up to 26 reports that it has
/// no free "address pool"; Podman and later versions of Docker report that they lack a "subnet".
Error network_error(const HeldHost& host, Error error) {
  const bool lacks_addresses = error.what.find("subnet") != std::string::npos ||
                               error.what.find("address pool") != std::string::npos;
  if (lacks_addresses) {
    error.code = ErrorCode::kExhausted;
    error.advice = "the engine of " + host.host.name() +
                   " has no addresses left for another network: give it more "
                   "(default-address-pools in its daemon.json), or let fewer jobs run at once";
  }
  error.what = "cannot create the network of the job: " + error.what;
  return error;
}

}  // namespace

void GangNetworks::ensure(const GangId& gang, HeldHost& host, std::function<void()> created,
                          Then then) {
  if (names_.count({gang, &host}) > 0) return then({});
  create({.gang = gang, .host = &host, .created = std::move(created), .then = std::move(then)}, 0);
}

void GangNetworks::create(const NetworkRequest& request, int tries) {
  const std::string name = numbered_name(network_name(request.gang), tries);
  const auto answered = [this, request, tries, name](Result<std::string> created) {
    if (created) {
      names_[{request.gang, request.host}] = name;
      request.created();
      return request.then({});
    }
    const bool is_taken = created.error().code == ErrorCode::kConflict;
    if (is_taken && tries == 0) return look_up(request);
    if (is_taken && tries + 1 < kMostNames) return create(request, tries + 1);
    request.then(network_error(*request.host, std::move(created).error()));
  };
  // An earlier start of this gang may not have been able to remove its network yet.
  removals_.cancel(*request.host, Removals::Kind::kNetwork, name, [this, request, name, answered] {
    request.host->client().create_network(name, labels_of_gang(owner_, request.gang), answered);
  });
}

/// An earlier server may have created the gang's network. A network of another owner is not used.
void GangNetworks::look_up(const NetworkRequest& request) {
  request.host->client().networks(
      as_filters(labels_of_gang(owner_, request.gang)),
      [this, request](const Result<NamedWithLabels>& listed) {
        if (!listed) return request.then(network_error(*request.host, listed.error()));
        if (listed->empty()) return create(request, 1);
        names_[{request.gang, request.host}] = listed->front().first;
        request.then({});
      });
}

void GangNetworks::adopt(const GangId& gang, HeldHost& host, std::string name) {
  names_.emplace(std::pair(gang, &host), std::move(name));
}

std::optional<std::string> GangNetworks::find(const GangId& gang, HeldHost& host) const {
  const auto found = names_.find({gang, &host});
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

void GangNetworks::remove(const GangId& gang, HeldHost& host, std::function<void()> tried) {
  const auto taken = names_.extract({gang, &host});
  if (!taken.empty()) {
    removals_.add(host, Removals::Kind::kNetwork, taken.mapped(), std::move(tried));
  } else if (tried) {
    tried();
  }
}

}  // namespace muster::engine
