#include "service/leader.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace muster::service {

namespace {

constexpr std::chrono::hours kPauseOfCollecting{1};
constexpr std::chrono::days kUnusedTreesAreKept{7};

}  // namespace

Leader::Leader(Dependencies parts, const control::SiteFacts& site,
               const schedule::Options& scheduling, const server::AppOptions& options,
               const NotifySettings& notify)
    : loop_(parts.loop),
      clock_(parts.clock),
      trees_(parts.trees),
      background_(parts.loop),
      store_(parts.store, parts.leadership, std::move(parts.lost)),
      courier_(parts.loop),
      hook_(parts.loop),
      notifications_(
          {.loop = parts.loop,
           .clock = parts.clock,
           .random = parts.random,
           .box = parts.box,
           .send = [this](notify::OutgoingNotification errand,
                          auto done) { courier_.send(std::move(errand), std::move(done)); },
           .check = [this](notify::Receiver receiver,
                           auto done) { courier_.check(std::move(receiver), std::move(done)); },
           .keep =
               [this](const notify::NotificationChanges& changes) {
                 return store_.commit(batch_of(changes));
               },
           .has_project =
               [this](const std::string& project) {
                 return !controller_.projects().line_of(project).empty();
               }}),
      notifying_store_(store_, notifications_, hook_),
      engine_(std::move(parts.engine)),
      accounts_({.loop = parts.loop,
                 .store = notifying_store_,
                 .clock = parts.clock,
                 .random = parts.random,
                 .box = parts.box}),
      controller_({.loop = parts.loop,
                   .store = notifying_store_,
                   .engine = *engine_,
                   .clock = parts.clock,
                   .random = parts.random,
                   .accounts = &accounts_},
                  site, scheduling),
      app_({.loop = parts.loop,
            .controller = controller_,
            .accounts = accounts_,
            .clock = parts.clock,
            .random = parts.random,
            .owner = site.user,
            .trees = parts.trees,
            .notifications = notifications_,
            .all_delivered = [this] { return notifications_.waiting() == 0 && hook_.is_idle(); },
            .door = parts.door},
           options, std::move(parts.leave)) {
  accounts_.check_accounts_by(site.account_faults);
  set_options(notify);
}

void Leader::set_options(const NotifySettings& settings) {
  courier_.set_rules(settings.rules);
  notifications_.set_schedule(settings.schedule);
  hook_.set_command(settings.command);
}

base::Result<void> Leader::take_up() {
  MUSTER_CHECK(controller_.recover());
  collect_trees();
  return {};
}

/// Files without a job are kept for a while, so that they need not be uploaded again. While a job
/// is unreadable, its files are unknown, and none are deleted.
void Leader::collect_trees() {
  if (controller_.has_unreadable_jobs()) return remove_forgotten_trees();
  auto used = controller_.trees_in_use();
  auto collect = [this, used = std::move(used), before = clock_.now() - kUnusedTreesAreKept] {
    const auto freed = trees_.collect(used, before);
    if (!freed) base::log_warning(freed.error().to_string());
  };
  background_.run(std::move(collect), [this] {
    collect_timer_ = loop_.after(kPauseOfCollecting, [this] { collect_trees(); });
  });
}

void Leader::remove_forgotten_trees() {
  const auto remove = [this] {
    const auto removed = trees_.remove_forgotten();
    if (!removed) base::log_warning(removed.error().to_string());
  };
  background_.run(remove, [] {});
}

}  // namespace muster::service
