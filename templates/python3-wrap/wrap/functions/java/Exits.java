package chiron;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** What a handler calls in place of System.exit, which would end all functions of the process. */
public final class Exits {
    private static final int UTF8 = 1, CLASS = 7, METHOD = 10, NAME_AND_TYPE = 12;
    private static final int LONG = 5, DOUBLE = 6, STRING = 8, HANDLE = 15, TYPE = 16, MODULE = 19, PACKAGE = 20;
    private static final int COUNT_AT = 8;

    private Exits() {}

    /** Raised in place of the exit. */
    static final class Exited extends ThreadDeath {
        private static final long serialVersionUID = 1;
        final int status;

        Exited(int status) {
            this.status = status;
        }
    }

    public static void exit(int status) {
        Exited exited = new Exited(status);
        Output.exit(exited);
        throw exited;
    }

    /** The class file `code`, with calls of System.exit as calls of ours: by the constants that name the method. */
    static byte[] redirected(byte[] code) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(code));
        in.skipNBytes(COUNT_AT);
        int count = in.readUnsignedShort();
        int[] at = new int[count];
        for (int number = 1; number < count; number++) {
            at[number] = code.length - in.available();
            int tag = in.readUnsignedByte();
            switch (tag) {
                case UTF8 -> in.skipNBytes(in.readUnsignedShort());
                case CLASS, STRING, TYPE, MODULE, PACKAGE -> in.skipNBytes(2);
                case HANDLE -> in.skipNBytes(3);
                case LONG, DOUBLE -> {
                    in.skipNBytes(8);
                    number++;
                }
                default -> in.skipNBytes(4);
            }
        }
        int end = code.length - in.available();
        byte[] head = Arrays.copyOf(code, end);
        boolean found = false;
        for (int number = 1; number < count; number++) {
            if (at[number] > 0 && code[at[number]] == METHOD && isExit(code, at, at[number])) {
                put(head, at[number] + 1, count + 1);
                found = true;
            }
        }
        if (!found) {
            return code;
        }
        put(head, COUNT_AT, count + 2);
        ByteArrayOutputStream made = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(made);
        out.write(head);
        out.writeByte(UTF8);
        out.writeUTF("chiron/Exits");
        out.writeByte(CLASS);
        out.writeShort(count);
        out.write(code, end, code.length - end);
        return made.toByteArray();
    }

    private static boolean isExit(byte[] code, int[] at, int method) {
        int owner = at[number(code, method + 1)];
        int named = at[number(code, method + 3)];
        return code[named] == NAME_AND_TYPE
            && text(code, at[number(code, owner + 1)]).equals("java/lang/System")
            && text(code, at[number(code, named + 1)]).equals("exit");
    }

    private static String text(byte[] code, int place) {
        return new String(code, place + 3, number(code, place + 1), StandardCharsets.UTF_8);
    }

    private static int number(byte[] code, int place) {
        return (code[place] & 0xff) << 8 | code[place + 1] & 0xff;
    }

    private static void put(byte[] code, int place, int number) {
        code[place] = (byte) (number >> 8);
        code[place + 1] = (byte) number;
    }
}
