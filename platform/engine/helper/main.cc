// muster-helper pack PATH: a tar of a file or a folder, on standard output.
// muster-helper unpack PATH: a tar from standard input becomes files there.
// muster-helper connect PORT: standard input and output are a connection to that port.
//
// What an engine runs in a task for `muster cp` and `muster port-forward`, in the place of programs
// that the task may lack or have in a way of its own. What goes wrong is said as
// workspace/copy_report.h has it; the exit code is 0 where all went well.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/units.h"
#include "engine/helper/connect.h"
#include "workspace/copy_report.h"
#include "workspace/tar_pack.h"
#include "workspace/tar_unpack.h"

namespace {

using muster::base::Error;
using muster::base::Result;
using namespace muster::workspace;  // NOLINT(google-build-using-namespace): this is its program

void say(const std::string& lines) {
  static_cast<void>(muster::base::write_all(STDERR_FILENO, lines));
}

void say_note(const CopyNote& note) {
  say(to_line(note));
}

int told(const Result<size_t>& failed) {
  if (!failed) say(to_lines(failed.error()));
  return failed && *failed == 0 ? 0 : 1;
}

/// How many entries were not copied.
Result<size_t> pack(const std::string& path) {
  MUSTER_TRY(TarPacker packer, TarPacker::open(path, say_note));
  while (true) {
    MUSTER_TRY(const std::string_view piece, packer.next());
    if (piece.empty()) return packer.totals().failed;
    MUSTER_CHECK(muster::base::write_all(STDOUT_FILENO, piece));
  }
}

Result<size_t> unpack(const std::string& path) {
  // Whoever hangs up closes the input as well, and what is half written is to be removed.
  ::signal(SIGHUP, SIG_IGN);
  std::array<char, 64 << 10> buffer;
  const ReadTar read = [&buffer]() -> Result<std::string_view> {
    ssize_t count = 0;
    do {
      count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) return muster::base::system_error("cannot read what is sent", errno);
    return std::string_view(buffer.data(), static_cast<size_t>(count));
  };
  MUSTER_TRY(const CopyTotals totals, unpack_tar(read, {.target = path}, {.on_note = say_note}));
  return totals.failed;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "pack") return told(pack(argv[2]));
  if (what == "unpack") return told(unpack(argv[2]));
  const auto port = muster::base::number_of<int>(argc == 3 ? argv[2] : "");
  if (what == "connect" && port) return muster::engine::connect_port(*port);
  say("error: invalid: muster-helper is started by muster; see muster --help\n");
  return 2;
}
