#include "engine/folder/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace muster::engine {

using Callback = std::shared_ptr<std::function<void()>>;

/// Several handles may watch one file; the kernel gives them one number.
struct FileWatch::State {
  base::UniqueFd inotify{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
  std::multimap<int, std::weak_ptr<std::function<void()>>> callbacks;

  std::vector<Callback> callbacks_of(int number) {
    std::vector<Callback> found;
    for (auto [at, end] = callbacks.equal_range(number); at != end; ++at) {
      if (Callback callback = at->second.lock()) found.push_back(std::move(callback));
    }
    return found;
  }

  void forget(int number) {
    auto [at, end] = callbacks.equal_range(number);
    while (at != end) at = at->second.expired() ? callbacks.erase(at) : std::next(at);
    if (callbacks.count(number) == 0) ::inotify_rm_watch(inotify.get(), number);
  }
};

FileWatch::FileWatch(base::EventLoop& loop) : state_(std::make_shared<State>()) {
  interest_ = loop.when_readable(state_->inotify.get(), [this] { read(); });
}

std::shared_ptr<void> FileWatch::watch(const std::filesystem::path& path,
                                       std::function<void()> changed) {
  const int number =
      ::inotify_add_watch(state_->inotify.get(), path.c_str(), IN_MODIFY | IN_DONT_FOLLOW);
  auto callback = std::make_shared<std::function<void()>>(std::move(changed));
  state_->callbacks.emplace(number, callback);
  std::weak_ptr<State> weak = state_;
  return {callback.get(), [callback, weak, number](void*) mutable {
            callback.reset();
            if (const auto state = weak.lock()) state->forget(number);
          }};
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
    for (size_t at = 0; at < static_cast<size_t>(count);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      if (numbers.empty() || numbers.back() != event->wd) numbers.push_back(event->wd);
      at += sizeof(inotify_event) + event->len;
    }
    for (const int number : numbers) {
      for (const Callback& callback : state->callbacks_of(number)) (*callback)();
    }
  }
}

}  // namespace muster::engine
