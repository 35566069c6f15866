#include "control/lines.h"

#include <algorithm>
#include <utility>

namespace muster::collective {
namespace {

constexpr std::size_t kWakeEvent = ~std::size_t{0};

// The news that one wait returns. More are returned by the next wait.
constexpr std::size_t kMostEvents = 64;

}  // namespace

Lines::Lines(const Descriptor& wake)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), events_(kMostEvents) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWakeEvent;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake.get(), &event);
}

std::size_t Lines::add(Link link, bool is_confirmed) {
  link.socket.close_in_children();
  lines_.push_back({link.rank, std::move(link.host), ControlConnection(std::move(link.socket))});
  const std::size_t index = lines_.size() - 1;
  poll_for(EPOLL_CTL_ADD, index, EPOLLIN);
  if (is_confirmed) confirm(index);
  return index;
}

void Lines::confirm(std::size_t index) {
  lines_[index].is_confirmed = true;
  first_.emplace(lines_[index].rank, index);
}

std::size_t Lines::to(int rank) const {
  const auto found = first_.find(rank);
  return found == first_.end() ? size() : found->second;
}

bool Lines::has_live(int rank) const {
  return std::ranges::any_of(
      lines_, [rank](const Line& line) { return line.rank == rank && line.is_live(); });
}

bool Lines::send(std::size_t index, Bytes frame) {
  Line& line = lines_[index];
  const bool has_room = line.connection.send(std::move(frame));
  if (line.connection.has_unsent() && !line.waits_to_send) {
    line.waits_to_send = true;
    unsent_.push_back(index);
    poll_for(EPOLL_CTL_MOD, index, EPOLLIN | EPOLLOUT);
  }
  return has_room;
}

void Lines::flush_unsent() {
  std::erase_if(unsent_, [this](std::size_t index) {
    Line& line = lines_[index];
    line.connection.flush();
    line.waits_to_send = line.connection.has_unsent();
    if (!line.waits_to_send && !line.has_ended) poll_for(EPOLL_CTL_MOD, index, EPOLLIN);
    return !line.waits_to_send;
  });
}

void Lines::end(std::size_t index) {
  lines_[index].has_ended = true;
  poll_for(EPOLL_CTL_DEL, index, 0);
  lines_[index].connection.finish();
}

void Lines::wait(int timeout_ms, const std::function<void(std::size_t)>& readable) {
  const int found =
      ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
  for (int i = 0; i < found; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeEvent || (event.events & ~EPOLLOUT) == 0) continue;
    readable(event.data.u64);
  }
}

void Lines::poll_for(int operation, std::size_t index, std::uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = index;
  ::epoll_ctl(epoll_.get(), operation, lines_[index].connection.fd(), &event);
}

}  // namespace muster::collective
