// What of a program's output a terminal is given to obey: colours, and nothing else.
//
// A terminal obeys control characters, and a log must not move its cursor, set its title, ring or
// type into it. Sequences that only lay out a screen (cursor movements, erasing) are left out, as a
// progress bar is full of them; colours pass where the terminal shows any, and end with the line;
// every other control character is shown, as \x1b and the like.
//
// Pure. Text may come in pieces cut anywhere; one for each line.
#pragma once

#include <string>
#include <string_view>

#include "cli/terminal.h"

namespace muster::cli {

class LogText {
 public:
  explicit LogText(bool colour) : colour_(colour) {}

  void append(std::string_view text, std::string& out);

  /// Shows what was held back and takes colours back.
  void finish(std::string& out);

 private:
  enum class Look { kPart, kWhole, kBroken };

  Look take(char letter);
  void end_sequence(std::string& out);

  bool colour_;
  bool coloured_ = false;  ///< a colour was passed on and not taken back
  std::string sequence_;   ///< that has begun with ESC
  TerminalFilter filter_;
};

}  // namespace muster::cli
