package com.openfaas.function;

import java.math.BigDecimal;

/** Price rules of United States equity markets: tick sizes and price bands. */
final class Prices {
    private static final BigDecimal CENT = new BigDecimal("0.01");
    private static final BigDecimal SUB_PENNY = new BigDecimal("0.0001");
    private static final BigDecimal PENNY_STOCK = new BigDecimal("0.75");
    private static final BigDecimal SMALL_STOCK = new BigDecimal("3.00");
    private static final BigDecimal SMALLEST_WIDTH = new BigDecimal("0.15");

    private Prices() {}

    /** Whether `price` is a multiple of its minimum increment (SEC Rule 612). */
    static boolean onTick(BigDecimal price) {
        BigDecimal tick = price.compareTo(BigDecimal.ONE) >= 0 ? CENT : SUB_PENNY;
        return price.remainder(tick).signum() == 0;
    }

    /** Whether `price` lies in the limit-up limit-down band of a tier 1 security. */
    static boolean withinBand(BigDecimal price, BigDecimal reference) {
        BigDecimal width;
        if (reference.compareTo(SMALL_STOCK) > 0) {
            width = reference.multiply(new BigDecimal("0.05"));
        } else if (reference.compareTo(PENNY_STOCK) >= 0) {
            width = reference.multiply(new BigDecimal("0.20"));
        } else {
            width = reference.multiply(new BigDecimal("0.75")).min(SMALLEST_WIDTH);
        }
        return price.subtract(reference).abs().compareTo(width) <= 0;
    }
}
