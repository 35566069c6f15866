#include "engine/shim/folder_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace muster::engine {

namespace {

constexpr std::chrono::nanoseconds kTurn = std::chrono::milliseconds(200);

}  // namespace

FolderWatch::FolderWatch(bool asks_kernel) {
  if (asks_kernel) inotify_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify_) take_turns();
}

void FolderWatch::take_turns() {
  inotify_.reset();
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const timespec turn{.tv_sec = 0, .tv_nsec = kTurn.count()};
  const itimerspec turns{.it_interval = turn, .it_value = turn};
  ::timerfd_settime(timer_.get(), 0, &turns, nullptr);
}

bool FolderWatch::add(const std::filesystem::path& folder) {
  constexpr uint32_t kChanges = IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR;
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  const int number = inotify_ ? ::inotify_add_watch(inotify_.get(), folder.c_str(), kChanges) : -1;
  if (inotify_ && number < 0) take_turns();
  folders_[number] = folder;
  changes_[folder].all = true;
  return true;
}

void FolderWatch::read() {
  uint64_t turns = 0;
  if (timer_ && ::read(timer_.get(), &turns, sizeof turns) > 0) {
    for (auto& [folder, changes] : changes_) changes.all = true;
  }
  alignas(inotify_event) std::array<char, 16 << 10> buffer;
  ssize_t count = 0;
  while ((count = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
    for (size_t at = 0; at < static_cast<size_t>(count);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += sizeof(inotify_event) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        for (auto& [folder, changes] : changes_) changes.all = true;
      } else if (event->len > 0) {
        changes_[folders_[event->wd]].names.insert(event->name);
      }
    }
  }
}

FolderWatch::Changes FolderWatch::take(const std::filesystem::path& folder) {
  read();
  const auto found = changes_.find(folder);
  return found == changes_.end() ? Changes() : std::exchange(found->second, {});
}

bool FolderWatch::has_changes() const {
  return std::any_of(changes_.begin(), changes_.end(), [](const auto& entry) {
    return entry.second.all || !entry.second.names.empty();
  });
}

}  // namespace muster::engine
