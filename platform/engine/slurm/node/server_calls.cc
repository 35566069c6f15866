#include "engine/slurm/node/server_calls.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "engine/slurm/node/server_line.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::chrono::seconds kGreetingPatience{10};
constexpr size_t kLongestAddress = 64 << 10;

}  // namespace

struct ServerCalls::Call {
  Hello hello;
  Then then;
  std::shared_ptr<ServerLine> line;
  std::shared_ptr<void> search;
  base::EventLoop::Interest patience;
};

/// A server that was started anew elsewhere says so there.
CallbackAddress ServerCalls::server() const {
  CallbackAddress as_briefed{.hosts = brief_.hosts, .port = brief_.port};
  if (!shares_folder_) return as_briefed;
  const auto text =
      base::read_file(std::filesystem::path(brief_.folder) / kCallbackFile, kLongestAddress);
  const auto now = text ? decode_callback(*text) : Result<CallbackAddress>(text.error());
  return now ? *now : as_briefed;
}

std::shared_ptr<void> ServerCalls::call(Hello hello, Then then) {
  auto call = std::make_shared<Call>();
  call->hello = std::move(hello);
  call->then = std::move(then);
  const std::weak_ptr<Call> weak = call;
  call->search = search_.find(server(), [this, weak](Result<base::UniqueFd> socket) {
    const auto still = weak.lock();
    if (!still) return;
    if (!socket) return failed(still, std::move(socket).error());
    found(still, *std::move(socket));
  });
  return call;
}

void ServerCalls::found(const std::shared_ptr<Call>& call, base::UniqueFd socket) {
  call->line = std::make_shared<ServerLine>(loop_, std::move(socket), brief_.key,
                                            brief_.caller.gang, std::move(call->hello));
  const std::weak_ptr<Call> weak = call;
  call->patience = loop_.after(kGreetingPatience, [this, weak] {
    const auto still = weak.lock();
    if (still) failed(still, {.code = ErrorCode::kTimeout, .what = "the server does not answer"});
  });
  call->line->greet(
      [weak] {
        const auto still = weak.lock();
        if (!still) return;
        still->patience.reset();
        const auto then = std::exchange(still->then, nullptr);
        then(std::shared_ptr<NodeConnection>(std::exchange(still->line, nullptr)));
      },
      [this, weak](const std::string& why) {
        const auto still = weak.lock();
        if (still) {
          failed(still, {.code = ErrorCode::kRefused,
                         .what = "the server does not take the call: it " + why});
        }
      });
}

void ServerCalls::failed(const std::shared_ptr<Call>& call, Error error) {
  call->patience.reset();
  if (call->line) search_.distrust();
  loop_.post([line = std::exchange(call->line, nullptr)] {});  // it may be in the midst of calling
  const auto then = std::exchange(call->then, nullptr);
  if (then) then(std::move(error));
}

}  // namespace muster::engine::slurm
