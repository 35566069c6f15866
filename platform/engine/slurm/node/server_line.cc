#include "engine/slurm/node/server_line.h"

#include <utility>

namespace muster::engine::slurm {

ServerLine::ServerLine(base::EventLoop& loop, base::UniqueFd socket, const rsh::Key& key,
                       const Gang& gang, Hello hello)
    : socket_(std::make_shared<NodeSocket>(loop, std::move(socket), rsh::End::kNear, key)),
      gang_(gang),
      hello_(std::move(hello)) {
  hello_.address = socket_->own_address();
}

void ServerLine::greet(std::function<void()> greeted,
                       std::function<void(const std::string&)> failed) {
  socket_->begin({.on_established =
                      [this, greeted = std::move(greeted)] {
                        socket_->send(NodeNews(hello_));
                        const auto then = greeted;  // it may listen() to this anew
                        then();
                      },
                  .on_message = nullptr,
                  .on_end = std::move(failed),
                  .on_drain = nullptr},
                 encode(Caller{gang_}));
}

void ServerLine::listen(Handlers handlers) {
  socket_->listen({.on_established = nullptr,
                   .on_message = std::move(handlers.on_message),
                   .on_end = std::move(handlers.on_end),
                   .on_drain = std::move(handlers.on_drain)});
}

}  // namespace muster::engine::slurm
