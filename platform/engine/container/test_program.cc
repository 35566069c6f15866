// For tests: the program in their containers. Linked statically, so that an image needs no other
// file.
//
//   program print OUT ERR      prints OUT to its output, ERR to its error output
//   program exit CODE
//   program cat                its input to its output, to the end
//   program wait               until it is ended: by TERM, with code 15
//   program show NAME          a variable of its environment
//   program stat PATH          mode, owner and kind of a file: "0755 0:0 f"
//   program write PATH         exits 0 where a file can be written there
//   program capabilities       the CapEff line of its status, and NoNewPrivs
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) std::_Exit(1);
    text.remove_prefix(static_cast<size_t>(count));
  }
}

int print(const char* out, const char* error) {
  write_all(1, out);
  write_all(2, error);
  return 0;
}

int cat() {
  static std::array<char, 64 << 10> buffer;
  ssize_t count = 0;
  while ((count = ::read(0, buffer.data(), buffer.size())) > 0) {
    write_all(1, {buffer.data(), static_cast<size_t>(count)});
  }
  return count < 0 ? 1 : 0;
}

int wait_for_the_end() {
  struct sigaction end{};
  end.sa_handler = [](int) { std::_Exit(15); };
  ::sigaction(SIGTERM, &end, nullptr);
  write_all(1, "ready\n");
  while (true) ::pause();
}

int show(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return 1;
  write_all(1, value);
  return 0;
}

int print_stat(const char* path) {
  struct stat status{};
  if (::lstat(path, &status) != 0) return 1;
  const char* const kind = S_ISDIR(status.st_mode) ? "d" : S_ISREG(status.st_mode) ? "f" : "o";
  std::printf("%04o %u:%u %s", status.st_mode & 07777U, status.st_uid, status.st_gid, kind);
  return 0;
}

int try_to_write(const char* path) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return fd < 0 ? 1 : 0;
}

int capabilities() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return 1;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), status) != nullptr) {
    const std::string_view text(line.data());
    if (text.starts_with("CapEff") || text.starts_with("NoNewPrivs")) write_all(1, text);
  }
  std::fclose(status);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "print" && argc == 4) return print(argv[2], argv[3]);
  if (what == "exit" && argc == 3) return std::atoi(argv[2]);
  if (what == "cat") return cat();
  if (what == "wait") return wait_for_the_end();
  if (what == "show" && argc == 3) return show(argv[2]);
  if (what == "stat" && argc == 3) return print_stat(argv[2]);
  if (what == "write" && argc == 3) return try_to_write(argv[2]);
  if (what == "capabilities") return capabilities();
  write_all(2, "no such thing\n");
  return 2;
}
