// The fixture of the wheel's own tests.
#pragma once

#include <boost/test/unit_test.hpp>

#include "support/pages.hpp"

/// Pages of which each wheel gives back all.
struct with_pages {
  with_pages() = default;
  with_pages(const with_pages&) = delete;
  with_pages& operator=(const with_pages&) = delete;
  ~with_pages() { BOOST_TEST(pages.taken() == 0u); }

  counted_pages pages;
};
