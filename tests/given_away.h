// Whether an answer leaks a word of the project velvet (team_server.h).
#pragma once

#include <cctype>
#include <string>

#include "team_server.h"

namespace muster::server {

inline std::string all_of(const http::Response& response) {
  std::string text = response.body + "\n" + response.content_type;
  for (const auto& [name, value] : response.headers) text += "\n" + name + ": " + value;
  return text;
}

inline std::string all_of(const TeamServer::Ask& ask) {
  std::string text = ask.path + "\n" + ask.body;
  for (const auto& [name, value] : ask.query) text += "\n" + value;
  return text;
}

inline std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

/// The first word of kVelvetWords that the response contains although neither the request nor
/// `own_name`, the name of the caller, does. Empty: the response leaks nothing.
inline std::string leaked_word(const http::Response& response, const TeamServer::Ask& ask,
                               const std::string& own_name) {
  const std::string said = lower(all_of(response));
  const std::string asked = lower(all_of(ask)) + own_name;
  for (const std::string& word : kVelvetWords) {
    if (said.find(lower(word)) != std::string::npos && asked.find(lower(word)) == std::string::npos)
      return word;
  }
  return "";
}

}  // namespace muster::server
