#include "engine/folder/file_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace muster::engine {

namespace fs = std::filesystem;

using Callback = std::shared_ptr<std::function<void()>>;

namespace {

constexpr std::chrono::milliseconds kPauseOfComparisons{300};

/// Differs after a change of the file.
uint64_t look_of_file(const fs::path& path) {
  struct stat file{};
  if (::lstat(path.c_str(), &file) != 0) return 0;
  constexpr uint64_t kPrime = 1099511628211U;
  uint64_t look = 1;
  for (const auto number :
       {static_cast<uint64_t>(file.st_ino), static_cast<uint64_t>(file.st_size),
        static_cast<uint64_t>(file.st_mtim.tv_sec), static_cast<uint64_t>(file.st_mtim.tv_nsec)}) {
    look = look * kPrime + number;
  }
  return look;
}

/// The same for a file, or for a folder and the files in it.
uint64_t look_of(const fs::path& path) {
  uint64_t look = look_of_file(path);
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::directory) return look;
  fs::directory_iterator files(path, error);
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    look += look_of_file(files->path());
  }
  return look;
}

}  // namespace

/// Several handles may watch one file; the kernel gives them one number.
struct FileWatch::State {
  /// A file that the kernel does not watch.
  struct ComparedFile {
    fs::path path;
    uint64_t look = 0;
    std::weak_ptr<std::function<void()>> callback;
  };

  base::UniqueFd inotify;
  std::multimap<int, std::weak_ptr<std::function<void()>>> callbacks;
  std::vector<ComparedFile> compared;
  bool has_warned = false;

  std::vector<Callback> callbacks_of(int number) {
    std::vector<Callback> found;
    for (auto [at, end] = callbacks.equal_range(number); at != end; ++at) {
      if (Callback callback = at->second.lock()) found.push_back(std::move(callback));
    }
    return found;
  }

  std::vector<Callback> all_callbacks() {
    std::vector<Callback> found;
    for (const auto& [number, weak] : callbacks) {
      if (Callback callback = weak.lock()) found.push_back(std::move(callback));
    }
    return found;
  }

  void forget(int number) {
    auto [at, end] = callbacks.equal_range(number);
    while (at != end) at = at->second.expired() ? callbacks.erase(at) : std::next(at);
    if (callbacks.count(number) == 0) ::inotify_rm_watch(inotify.get(), number);
  }

  void forget_compared() {
    std::erase_if(compared, [](const ComparedFile& file) { return file.callback.expired(); });
  }

  void warn_once(int reason) {
    const base::Error error =
        base::system_error("cannot watch all files by inotify; they are compared instead", reason);
    // A missing file is no lack of the machine.
    if (error.code != base::ErrorCode::kExhausted || std::exchange(has_warned, true)) return;
    base::log_warning(error.what +
                      "; raise fs.inotify.max_user_watches and fs.inotify.max_user_instances "
                      "(sysctl), or this server's limit of open files");
  }
};

FileWatch::FileWatch(base::EventLoop& loop) : loop_(loop), state_(std::make_shared<State>()) {
  ask_kernel();
}

/// Whether there is a descriptor. If not, the next file tries again.
bool FileWatch::ask_kernel() {
  if (state_->inotify) return true;
  state_->inotify.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!state_->inotify) return false;
  interest_ = loop_.when_readable(state_->inotify.get(), [this] { read(); });
  return true;
}

std::shared_ptr<void> FileWatch::watch(const fs::path& path, std::function<void()> changed) {
  auto callback = std::make_shared<std::function<void()>>(std::move(changed));
  std::weak_ptr<State> weak = state_;
  int number = -1;
  if (ask_kernel()) {
    number = ::inotify_add_watch(state_->inotify.get(), path.c_str(), IN_MODIFY | IN_DONT_FOLLOW);
  }
  if (number < 0) {
    state_->warn_once(errno);
    state_->compared.push_back({.path = path, .look = look_of(path), .callback = callback});
    compare_soon();
    return {callback.get(), [callback, weak](void*) mutable {
              callback.reset();
              if (const auto state = weak.lock()) state->forget_compared();
            }};
  }
  state_->callbacks.emplace(number, callback);
  return {callback.get(), [callback, weak, number](void*) mutable {
            callback.reset();
            if (const auto state = weak.lock()) state->forget(number);
          }};
}

void FileWatch::compare_soon() {
  if (timer_ || state_->compared.empty()) return;
  timer_ = loop_.after(kPauseOfComparisons, [this] {
    timer_.reset();
    compare();
  });
}

void FileWatch::compare() {
  std::vector<Callback> changed;
  for (State::ComparedFile& file : state_->compared) {
    const uint64_t look = look_of(file.path);
    if (std::exchange(file.look, look) == look) continue;
    if (Callback callback = file.callback.lock()) changed.push_back(std::move(callback));
  }
  compare_soon();  // first, because a callback may end the watch
  for (const Callback& callback : changed) (*callback)();
}

void FileWatch::read() {
  alignas(inotify_event) std::array<char, 16 << 10> buffer;
  const auto state = state_;  // a callback may end the watch
  while (true) {
    // The descriptor does not block; clang-tidy mistakes weak_ptr::lock() for a mutex.
    // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection)
    const ssize_t count = ::read(state->inotify.get(), buffer.data(), buffer.size());
    if (count <= 0) return;
    std::vector<int> numbers;
    bool lost_some = false;
    for (size_t at = 0; at < static_cast<size_t>(count);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      lost_some = lost_some || (event->mask & IN_Q_OVERFLOW) != 0;
      if (numbers.empty() || numbers.back() != event->wd) numbers.push_back(event->wd);
      at += sizeof(inotify_event) + event->len;
    }
    if (lost_some) {
      for (const Callback& callback : state->all_callbacks()) (*callback)();
      continue;
    }
    for (const int number : numbers) {
      for (const Callback& callback : state->callbacks_of(number)) (*callback)();
    }
  }
}

}  // namespace muster::engine
