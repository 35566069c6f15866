#include "engine/process/process_networks.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/log.h"

namespace muster::engine {

namespace {

// A gang's network vanishes some milliseconds after its last process.
constexpr std::chrono::milliseconds kBridgePause{100};
constexpr int kBridgeTries = 50;

}  // namespace

ProcessNetworks::~ProcessNetworks() {
  // Gangs that outlive the server need their egress.
  if (egress_ && networks_.empty()) egress_->close();
  if (removes_left_) Egress::remove_left(options_.folder.string());
}

void ProcessNetworks::remove_left_egress() {
  removes_left_ = !egress_;
  if (removes_left_) Egress::remove_left(options_.folder.string());
}

bool ProcessNetworks::open_egress(const EgressOptions& options) {
  if (::geteuid() != 0) return open_pasta(options);
  auto opened = Egress::open(options);
  if (!opened) {
    base::log_warning(opened.error().what);
    return false;
  }
  egress_ = *std::move(opened);
  base::log_info("jobs reach the Internet from " + network_text(egress_->network()) +
                 ", over the bridge " + egress_->bridge());
  return true;
}

bool ProcessNetworks::open_pasta(const EgressOptions& options) {
  auto plan = pasta_plan(options);
  if (!plan) {
    base::log_warning(plan.error().what);
    return false;
  }
  pasta_ = *std::move(plan);
  base::log_info("jobs reach the Internet by pasta");
  return true;
}

Result<const NetworkNamespace*> ProcessNetworks::network_of_gang(const GangId& gang) {
  const auto known = networks_.find(gang);
  if (known != networks_.end()) return &known->second;
  if (const auto shim = tasks_.running_shim(gang)) {
    MUSTER_TRY(const RunningRecord record, *shim);
    MUSTER_TRY(NetworkNamespace network, network_of(record.pid));
    return &(networks_[gang] = std::move(network));
  }
  std::optional<Cable> cable;
  if (egress_) {
    MUSTER_TRY(cable, egress_->next_cable());
  }
  const auto ids =
      options_.id_space() != nullptr ? std::optional(*options_.id_space()) : std::nullopt;
  MUSTER_TRY(NetworkNamespace network,
             make_network_namespace(options_.shim.string(), ids, options_.own_networks, cable));
  if (pasta_) MUSTER_CHECK(connect_by_pasta(options_.shim.string(), *pasta_, network));
  return &(networks_[gang] = std::move(network));
}

void ProcessNetworks::leave(const GangId& gang) {
  if (tasks_.has_tasks(gang)) return;
  networks_.erase(gang);
  if (removes_left_) try_removal(kBridgeTries);
}

void ProcessNetworks::try_removal(int tries) {
  removal_.reset();
  if (Egress::remove_left(options_.folder.string()) || tries <= 1) return;
  removal_ = loop_.after(kBridgePause, [this, tries] { try_removal(tries - 1); });
}

}  // namespace muster::engine
