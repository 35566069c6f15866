#include "service/leader.h"

#include <utility>

namespace muster::service {

Leader::Leader(Parts parts, const control::SiteFacts& site, const schedule::Options& scheduling,
               const server::AppOptions& options)
    : store_(parts.store, parts.leadership, std::move(parts.address), std::move(parts.lost)),
      engine_(std::move(parts.engine)),
      accounts_({.loop = parts.loop,
                 .store = store_,
                 .clock = parts.clock,
                 .random = parts.random,
                 .box = parts.box}),
      controller_({.loop = parts.loop,
                   .store = store_,
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
            .owner = site.user},
           options, std::move(parts.leave)) {}

}  // namespace muster::service
