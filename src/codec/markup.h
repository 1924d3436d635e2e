// Text within XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace firestop::codec {

// As an element's text, or within quotes of either kind as an attribute's value.
std::string escape_markup(std::string_view text);

}  // namespace firestop::codec
