#include "cli/forwarded_connections.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "cli/forwarded_connection.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace muster::cli {

using base::Result;
using base::UniqueFd;

namespace {

constexpr size_t kMostConnections = 64;
/// What connections have to end in when all is over.
constexpr std::chrono::seconds kFarewell{2};

}  // namespace

ForwardedConnections::ForwardedConnections(std::string program)
    : program_(std::move(program)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      room_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ForwardedConnections::~ForwardedConnections() {
  ::eventfd_write(stop_.get(), 1);
  std::unique_lock lock(mutex_);
  for (const int local : locals_) ::shutdown(local, SHUT_RDWR);
  if (!ended_.wait_for(lock, kFarewell, [this] { return locals_.empty(); })) {
    std::cout.flush();
    std::_Exit(kExitInterrupted);
  }
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
}

void ForwardedConnections::begin(std::unique_ptr<api::Client> client, const std::string& job,
                                 const api::ForwardRequest& request, UniqueFd local,
                                 const std::string& name) {
  join_ended();
  const std::lock_guard lock(mutex_);
  locals_.insert(local.get());
  threads_.emplace_back(
      [this, client = std::move(client), job, request, local = std::move(local), name]() mutable {
        const auto carried = carry(*client, job, request, local, stop_.get());
        end(std::move(local), name, carried);
      });
}

bool ForwardedConnections::is_full() {
  const std::lock_guard lock(mutex_);
  return locals_.size() >= kMostConnections;
}

void ForwardedConnections::take_room() {
  eventfd_t count = 0;
  ::eventfd_read(room_.get(), &count);
}

/// On the thread of that connection.
void ForwardedConnections::end(UniqueFd local, const std::string& name,
                               const Result<void>& carried) {
  const std::lock_guard lock(mutex_);
  if (!carried) {
    std::cerr << program_ << ": " << name << ": " << safe_lines(carried.error().what) << std::endl;
  }
  locals_.erase(local.get());
  local.reset();
  over_.insert(std::this_thread::get_id());
  ::eventfd_write(room_.get(), 1);
  ended_.notify_all();
}

void ForwardedConnections::join_ended() {
  std::unique_lock lock(mutex_);
  const std::set<std::thread::id> over = std::exchange(over_, {});
  lock.unlock();
  std::erase_if(threads_, [&](std::thread& thread) {
    if (!over.contains(thread.get_id())) return false;
    thread.join();
    return true;
  });
}

}  // namespace muster::cli
